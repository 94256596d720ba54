#include "shape/sharding.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "shape/memory.h"
#include "shape/parameters.h"

namespace fathom {
namespace {

/// Parameters of one stage that a tensor-parallel group divides, and those that each GPU has.
struct StageParameters {
  double divided = 0;
  double whole = 0;

  double on_one_gpu(std::int64_t tensor) const { return divided / as_double(tensor) + whole; }
};

/// All layers of the model, and what comes before and after them.
struct ModelParts {
  StageParameters layers, first, last;
};

ModelParts split(const Shape& shape) {
  const ParameterCount count = count_parameters(shape);
  Shape bare = shape;
  bare.conventions.final_norm = bare.conventions.embedding_norm = false;
  bare.conventions.head_bias = false;
  const ParameterCount inner = count_parameters(bare);
  ModelParts parts;
  parts.layers = {as_double(count.block_matrices()), as_double(inner.norms + inner.biases)};
  const double embedding_norm = shape.conventions.embedding_norm ? as_double(shape.width) : 0.0;
  parts.first = {as_double(count.embedding + count.positions), embedding_norm};
  parts.last = {
      as_double(shape.vocab) * as_double(shape.width) + as_double(count.biases - inner.biases),
      as_double(count.norms - inner.norms) - embedding_norm};
  return parts;
}

DeviceMemory stage_memory(const Shape& shape, const Sharding& s, bool first, bool last) {
  const ModelParts parts = split(shape);
  const double stages = as_double(s.pipeline);
  double parameters = parts.layers.on_one_gpu(s.tensor) / stages;
  if (first) parameters += parts.first.on_one_gpu(s.tensor);
  // On a single stage a tied head is the embedding that is already there.
  if (last && !(first && shape.tied)) parameters += parts.last.on_one_gpu(s.tensor);
  if (last && first && shape.tied) parameters += parts.last.whole;

  const double copies = as_double(s.copies());
  DeviceMemory memory;
  memory.weights = kWeightBytes * parameters / (s.zero >= 3 ? copies : 1);
  memory.gradients = kGradientBytes * parameters / (s.zero >= 2 ? copies : 1);
  memory.optimizer = kOptimizerBytes * parameters / (s.zero >= 1 ? copies : 1);
  if (s.zero >= 3 && copies > 1) {
    memory.gathered = kWeightBytes * parts.layers.on_one_gpu(s.tensor) / as_double(shape.layers);
  }
  const double tokens = as_double(s.micro_batch) * as_double(shape.context) / as_double(s.tensor);
  const double layers = as_double(shape.layers) / stages;
  const double in_flight = first ? stages : 1;
  const double layer = activation_bytes_per_token_layer(shape);
  const double input = 2 * as_double(shape.width);
  memory.activations =
      tokens * (s.recompute ? in_flight * layers * input + layer : in_flight * layers * layer);
  if (first) memory.activations += tokens * input;  // the embedding's output
  if (last) {
    memory.activations += tokens * input;  // the final norm's
    memory.logits = tokens * 4 * as_double(shape.vocab);
  }
  return memory;
}

void check(const Shape& shape, const Sharding& s) {
  for (const auto& [value, name] : {std::pair{s.gpus, "--gpus"},
                                    {s.tensor, "--tensor-parallel"},
                                    {s.pipeline, "--pipeline-parallel"},
                                    {s.micro_batch, "--micro-batch"}}) {
    if (value < 1) throw ConfigError(fmt::format("{} must be at least 1", name));
  }
  if (s.zero < 0 || s.zero > 3) throw ConfigError("--zero must be 0, 1, 2 or 3");
  if (s.gpus % (s.tensor * s.pipeline) != 0) {
    throw ConfigError(
        fmt::format("--gpus {} is no multiple of --tensor-parallel {} × --pipeline-parallel {}",
                    s.gpus, s.tensor, s.pipeline));
  }
  if (shape.layers % s.pipeline != 0) {
    throw ConfigError(
        fmt::format("{} layers do not divide into {} stages", shape.layers, s.pipeline));
  }
}

}  // namespace

DeviceMemory count_device_memory(const Shape& shape, const Sharding& sharding) {
  check(shape, sharding);
  if (sharding.pipeline == 1) return stage_memory(shape, sharding, true, true);
  const DeviceMemory first = stage_memory(shape, sharding, true, false);
  const DeviceMemory last = stage_memory(shape, sharding, false, true);
  return first.total() >= last.total() ? first : last;
}

bool fits_in_memory(const DeviceMemory& memory, const Hardware& hardware) {
  return memory.total() <= kUsableMemory * hardware.memory_bytes;
}

std::optional<Sharding> find_fitting(const Shape& shape, const Sharding& sharding,
                                     const Hardware& hardware) {
  constexpr std::int64_t kMostGpus = 1'000'000;
  const auto good = [&](const Sharding& s) {
    return fits_in_memory(count_device_memory(shape, s), hardware);
  };
  Sharding changed = sharding;
  for (; changed.gpus <= kMostGpus; changed.gpus *= 2) {
    changed.zero = sharding.zero;
    changed.recompute = sharding.recompute;
    changed.micro_batch = sharding.micro_batch;
    if (good(changed)) return changed;
    const std::int64_t highest = changed.copies() > 1 ? 3 : changed.zero;
    while (changed.zero < highest) {
      ++changed.zero;
      if (good(changed)) return changed;
    }
    changed.recompute = true;
    while (true) {
      if (good(changed)) return changed;
      if (changed.micro_batch == 1) break;
      changed.micro_batch = std::max<std::int64_t>(1, changed.micro_batch / 2);
    }
  }
  return std::nullopt;
}

}  // namespace fathom
