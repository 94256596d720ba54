// Every op a plan can hold. An op is plain data: which tensors, which attributes. A backend is a
// set of overloads over these types (ref::run, cpu::bind, cuda::bind); the compiler says which one
// is missing.
#pragma once

#include <array>
#include <variant>

#include "engine/ops/activation/activation.h"
#include "engine/ops/adamw/adamw.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/dropout/dropout.h"
#include "engine/ops/embed/embed.h"
#include "engine/ops/fused/bias_gradient.h"
#include "engine/ops/fused/linear_activation.h"
#include "engine/ops/fused/linear_norm.h"
#include "engine/ops/head_loss/head_loss.h"
#include "engine/ops/keys/keys.h"
#include "engine/ops/linear/linear.h"
#include "engine/ops/norm/norm.h"
#include "engine/ops/prox/prox.h"
#include "engine/ops/residual/residual.h"
#include "engine/ops/slice/slice.h"

namespace fathom::engine {

/// What model code appends.
using ForwardOp = std::variant<Embed, AddPositions, Linear, Activation, Norm, Residual, Slice,
                               AddSlice, MapKeys, Attention, Dropout, HeadLoss, Logits>;

/// What a program is made of: forward ops, the backward ops derived from them, the update, and what
/// the fusion pass made of these.
using Op =
    std::variant<Embed, AddPositions, Linear, Activation, Norm, Residual, Slice, AddSlice, MapKeys,
                 Attention, Dropout, HeadLoss, Logits, EmbedBackward, AddPositionsBackward,
                 LinearBackward, ActivationBackward, NormBackward, ResidualBackward, SliceBackward,
                 AddSliceBackward, MapKeysBackward, AttentionBackward, DropoutBackward,
                 HeadLossBackward, SquaredNorm, AdamW, Prox, CopyParameters, LinearThenActivation,
                 LinearBackwardThenActivation, LinearThenNorm, LinearBackwardThenNorm,
                 WithBiasGradient<ActivationBackward>, WithBiasGradient<NormBackward>,
                 WithBiasGradient<AttentionBackward>>;

/// In the order of Op. A backward op has a ', a fused one names its parts.
inline constexpr std::array kOpNames{"embed",
                                     "positions",
                                     "linear",
                                     "activation",
                                     "norm",
                                     "residual",
                                     "slice",
                                     "add slice",
                                     "keys",
                                     "attention",
                                     "dropout",
                                     "head loss",
                                     "logits",
                                     "embed'",
                                     "positions'",
                                     "linear'",
                                     "activation'",
                                     "norm'",
                                     "residual'",
                                     "slice'",
                                     "add slice'",
                                     "keys'",
                                     "attention'",
                                     "dropout'",
                                     "head loss'",
                                     "grad norm",
                                     "adamw",
                                     "prox",
                                     "copies",
                                     "linear + activation",
                                     "linear' + activation'",
                                     "linear + norm",
                                     "linear' + norm'",
                                     "activation' + bias",
                                     "norm' + bias",
                                     "attention' + bias"};
static_assert(kOpNames.size() == std::variant_size_v<Op>);

inline const char* op_name(const Op& op) {
  return kOpNames[op.index()];
}

inline Uses uses_of(const Op& op) {
  return std::visit([](const auto& typed) { return typed.uses(); }, op);
}

}  // namespace fathom::engine
