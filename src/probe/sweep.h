// Many variants of one model over the same windows, in a single sweep through its layers.
//
// The base is the intact model, or a path through some of its layers. A variant shares the base's
// stream up to place `fork` and then takes its own steps: layers left out, halves switched off, a
// different order, a map in place of a layer. All variants move through layer l together, so its
// weights are read once, and what they share is computed once: all single-layer removals cost
// L (L - 1) / 2 layer runs, half as much as L passes. A task is one window of one variant on one
// thread, so results are bit for bit the same for any number of threads. On a GPU a task is one
// variant over all windows (device_sweep.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "pretrained/device_model.h"
#include "pretrained/forward.h"
#include "probe/windows.h"

namespace fathom::probe {

/// In place of a layer: h <- W h + b, or h <- h + b where W is absent.
struct LayerMap {
  pretrained::Matrix weight;
  pretrained::Vector bias;
};

struct Step {
  std::int64_t layer = 0;
  pretrained::LayerEdit edit;
  std::shared_ptr<const LayerMap> instead;
};

struct Variant {
  std::size_t fork = 0;     // places of the base that it shares
  std::vector<Step> steps;  // a step may go back by one place of the path at most
};

/// Layers in increasing order.
using Path = std::vector<std::int64_t>;
Path whole_path(std::int64_t depth);
/// The path without some of its layers.
Path path_without(const Path& path, const std::vector<std::int64_t>& removed);
/// `path`, a part of `base`, as a variant of it.
Variant along(const Path& base, const Path& path);

/// Streams of the base over one window: h_0 .. h_L and the streams after attention.
struct WindowStreams {
  std::vector<std::vector<float>> states, middles;
};

/// Losses of one window: of the base, then of every variant; f32 per target position.
struct WindowLosses {
  std::vector<float> base;
  std::vector<std::vector<float>> variants;
};

/// Called in the order of windows, on the calling thread.
using WindowDone =
    std::function<void(std::size_t window, const WindowStreams&, const WindowLosses&)>;

struct SweepControl {
  unsigned threads = 1;
  pretrained::DeviceModel* device = nullptr;        // the same weights on a GPU; nullptr: the CPU
  std::uint64_t memory_bytes = 1u << 30;            // for streams
  bool keep_middles = false;                        // WindowStreams::middles is filled
  bool with_losses = true;                          // a model without a head has none
  std::function<bool()> stop;                       // StoppedError when it says so
  std::function<void(double layer_runs)> progress;  // layer runs (x windows) since the last call
};

class Sweep {
 public:
  Sweep(pretrained::Weights& weights, SweepControl control);

  void run(std::span<const Window> windows, const Path& base, const std::vector<Variant>& variants,
           const WindowDone& done);
  /// Layer runs for one window: what `progress` will add up to per window.
  static double cost(const Path& base, const std::vector<Variant>& variants);

  pretrained::Weights& weights() { return weights_; }
  const SweepControl& control() const { return control_; }
  /// The forward pass for windows of this length.
  const pretrained::Forward& forward(std::int64_t tokens);

 private:
  struct Run;
  std::size_t chunk_end(std::span<const Window> windows, std::size_t begin, const Path& base,
                        const std::vector<Variant>& variants) const;
  void run_chunk(std::span<const Window> windows, std::size_t first, const Path& base,
                 const std::vector<Variant>& variants, const WindowDone& done);

  pretrained::Weights& weights_;
  SweepControl control_;
  std::vector<std::unique_ptr<pretrained::Forward>> forwards_;
  std::vector<pretrained::Scratch> scratch_;
};

/// body(task, thread) for all tasks, each on one thread; the first exception is rethrown.
void run_tasks(unsigned threads, std::size_t tasks,
               const std::function<void(std::size_t task, std::size_t thread)>& body);

}  // namespace fathom::probe
