// Every op a plan can hold. An op is plain data: which tensors, which attributes. A backend is a
// set of overloads over these types (ref::run, cpu::bind, cuda::bind); the compiler says which one
// is missing.
#pragma once

#include <variant>

#include "engine/ops/activation/activation.h"
#include "engine/ops/adamw/adamw.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/dropout/dropout.h"
#include "engine/ops/embed/embed.h"
#include "engine/ops/head_loss/head_loss.h"
#include "engine/ops/linear/linear.h"
#include "engine/ops/norm/norm.h"
#include "engine/ops/residual/residual.h"

namespace fathom::engine {

/// What model code appends.
using ForwardOp = std::variant<Embed, AddPositions, Linear, Activation, Norm, Residual, Attention,
                               Dropout, HeadLoss, Logits>;

/// What a program is made of: forward ops, the backward ops derived from them, the update.
using Op = std::variant<Embed, AddPositions, Linear, Activation, Norm, Residual, Attention, Dropout,
                        HeadLoss, Logits, EmbedBackward, AddPositionsBackward, LinearBackward,
                        ActivationBackward, NormBackward, ResidualBackward, AttentionBackward,
                        DropoutBackward, HeadLossBackward, SquaredNorm, AdamW, CopyParameters>;

inline Uses uses_of(const Op& op) {
  return std::visit([](const auto& typed) { return typed.uses(); }, op);
}

}  // namespace fathom::engine
