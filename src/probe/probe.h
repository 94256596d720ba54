// `fathom probe`: what a trained model does with its depth, measured on a text.
//
// Windows are added, doubling, until every layer's removal cost is settled (layer_class.h), or the
// tokens or the time are spent. All costs are paired: the same tokens with and without.
#pragma once

#include <functional>
#include <string>

#include "pretrained/device_model.h"
#include "pretrained/weights.h"
#include "probe/result.h"
#include "probe/windows.h"

namespace fathom::probe {

struct ProbeOptions {
  unsigned threads = 1;
  pretrained::DeviceModel* device = nullptr;  // the same weights on a GPU
  std::int64_t first_tokens = 4096;
  double seconds = 600;       // no new round is begun that would probably end later
  bool fixed_tokens = false;  // measure exactly the text given
  bool heads = true, curves = true, lens = true;
  std::string hardware = "h200";
  std::function<bool()> stop;
  std::function<void(const std::string& what, double share)> progress;
};

ProbeResult probe_model(pretrained::Weights& weights, const ProbeText& text,
                        const std::string& name, const ProbeOptions& options);

}  // namespace fathom::probe
