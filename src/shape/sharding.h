// Memory of one GPU when a model is trained on several: ZeRO or FSDP stages over the data-parallel
// copies, tensor and pipeline parallelism inside one copy.
//
// A copy spans t p GPUs (t tensor, p pipeline), so n GPUs hold n / (t p) = c copies. Matrices and
// embeddings are divided by t, norms and biases are not; a stage has L / p layers, the first stage
// the embedding and positions, the last one the final norm, the head and the logits (a copy of the
// embedding when tied). Per parameter of the stage:
//   weights 2 (over c from stage 3 on), gradients 2 (from stage 2 on), AdamW 12 (from stage 1 on).
// Stage 3 also holds one layer gathered. Activations of a micro-batch are divided by t (sequence
// parallelism); with one-forward-one-backward schedules the first stage keeps p micro-batches, the
// last one keeps one. The heavier of the first and the last stage is reported.
#pragma once

#include <optional>

#include "shape/hardware.h"
#include "shape/shape.h"

namespace fathom {

struct Sharding {
  std::int64_t gpus = 1;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t zero = 0;         // 0 to 3
  std::int64_t micro_batch = 1;  // sequences of the shape's context
  bool recompute = false;        // keep only each layer's input

  std::int64_t copies() const { return gpus / (tensor * pipeline); }
};

struct DeviceMemory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double gathered = 0;  // stage 3: the layer being computed
  double activations = 0;
  double logits = 0;
  double total() const { return weights + gradients + optimizer + gathered + activations + logits; }
};

/// The share of a GPU's memory that may be used; the rest goes to fragmentation and the libraries.
inline constexpr double kUsableMemory = 0.9;

/// ConfigError when the GPUs do not divide into copies or the layers into stages.
DeviceMemory count_device_memory(const Shape& shape, const Sharding& sharding);

bool fits_in_memory(const DeviceMemory& memory, const Hardware& hardware);

/// The least change that fits: a higher stage, recomputation, a smaller micro-batch, and finally
/// more GPUs (doubled; up to a million). Nothing when even that does not.
std::optional<Sharding> find_fitting(const Shape& shape, const Sharding& sharding,
                                     const Hardware& hardware);

}  // namespace fathom
