// What a training step needs to know besides the model: the type of its activations and AdamW's
// settings. Separate from transformer.h, so that run specs can be read without knowing any op.
#pragma once

#include <array>
#include <cstdint>

#include "core/enum_names.h"
#include "engine/ops/prox/prox_kind.h"

namespace fathom::model {

enum class Precision : std::uint8_t { f32, bf16 };
constexpr auto enum_names(Precision) {
  return std::array{"f32", "bf16"};
}

struct OptimiserSettings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double weight_decay = 0.1;
  double epsilon = 1e-8;
  engine::ProxKind prox = engine::ProxKind::none;
  double prox_rows = 0;
  double prox_heads = 0;
};

}  // namespace fathom::model
