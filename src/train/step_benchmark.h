// Times training steps of a model on random tokens, as a whole and by kind of op, and its forward
// pass.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/device.h"
#include "model/transformer.h"

namespace fathom::train {

struct StepTiming {
  std::int64_t parameters = 0;
  std::int64_t steps = 0;
  double best_seconds = 0, median_seconds = 0;  // forward, backward and update
  double first_seconds = 0;                     // plan, memory, primitives and the first step
  double flops = 0;                             // of a step, masked scores not counted
  double bytes = 0;                             // of a step, operands and results once
  double nominal_flops = 0;  // 6 N tokens + 12 L D T tokens, the usual count with full attention
  std::int64_t memory_bytes = 0;
  std::map<std::string, double> seconds_by_op;  // one step, profiled
};

StepTiming time_steps(const model::ModelSpec& spec, const model::BuildOptions& options,
                      const engine::Device& device, double seconds);

struct ForwardTiming {
  double best_seconds = 0;  // from tokens to logits
  std::int64_t memory_bytes = 0;
  std::int64_t parameters = 0;
};

/// At least 3 passes, then as many as fit in `seconds`.
ForwardTiming time_forward(const model::ModelSpec& spec, model::BuildOptions options,
                           const engine::Device& device, double seconds);

/// Several models on one device, first one after the other, then concurrently.
struct PackTiming {
  std::vector<double> alone_seconds;  // of all steps of each model
  double together_seconds = 0;        // until the last model is done
  bool same_bits = false;             // each model's last loss is the same as when alone
};

PackTiming time_pack(const std::vector<model::ModelSpec>& specs, const model::BuildOptions& options,
                     const engine::Device& device, std::int64_t steps);

}  // namespace fathom::train
