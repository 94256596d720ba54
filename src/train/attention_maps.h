// The attention weights of a trained model, head by head, for any keys and any pattern:
//
//   a_ij = exp(s_ij) / sum_j exp(s_ij),   s_ij = scale <q_i, k_j> over the keys that i sees,
//
// from the queries and keys that the training engine computes (engine/ops/attention).
#pragma once

#include <functional>
#include <span>

#include "train/weights.h"

namespace fathom::train {

/// `weights` [T, T] of one head over one sequence, row i a query; layers are attention sublayers.
using MapWatcher = std::function<void(std::size_t sequence, std::int64_t layer, std::int64_t head,
                                      std::span<const float> weights)>;

/// `tokens` are whole sequences of the model's context. ConfigError for attention without softmax
/// and for rotary positions, which rotate the keys after the engine has exposed them.
void watch_attention(const Weights& weights, std::span<const data::TokenId> tokens, int threads,
                     const MapWatcher& watcher);

}  // namespace fathom::train
