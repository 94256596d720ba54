// The update of all parameters at once: gradient norm, clipping, AdamW, compute copies.
//
//   SquaredNorm:   norm = sqrt(sum of squares of all gradients), summed in double in a fixed order
//   AdamW (arXiv 1711.05101), t = step, per parameter with its multipliers:
//     g <- g min(1, clip_norm / norm)        (clip_norm = 0: no clipping)
//     m <- beta1 m + (1 - beta1) g,   v <- beta2 v + (1 - beta2) g^2
//     lr = learning_rate * lr_multiplier
//     p <- p - lr weight_decay p - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
//   CopyParameters: every compute copy <- its parameter, rounded to nearest even.
//
// The weight decay is coupled to the learning rate as in PyTorch. Each parameter has its own
// epsilon and decay (width and depth rules set them), given in `groups`.
#pragma once

#include <vector>

#include "engine/plan/uses.h"

namespace fathom::engine {

struct SquaredNorm {
  TensorId gradients, norm;  // the whole gradient storage; norm f32 [1, 1]

  Uses uses() const { return {{gradients}, {norm}}; }
};

struct AdamWGroup {
  TensorId parameter;
  float lr_multiplier = 1;
  float weight_decay = 0;
  float epsilon = 1e-8f;
};

struct AdamW {
  TensorId parameters, gradients, moment1, moment2;  // the whole storages
  TensorId norm;
  std::vector<AdamWGroup> groups;
  float beta1 = 0.9f;
  float beta2 = 0.95f;

  Uses uses() const {
    return {{parameters, gradients, moment1, moment2, norm}, {parameters, moment1, moment2}};
  }
};

struct CopyParameters {
  std::vector<TensorId> copies;

  Uses uses() const {
    Uses uses;
    uses.writes = copies;
    return uses;
  }
};

}  // namespace fathom::engine
