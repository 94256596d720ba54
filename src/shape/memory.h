// Bytes: training state, activations, logits, KV cache.
//
// Training state, mixed precision AdamW: bf16 weights 2 and gradients 2, fp32 master copy 4 and two
// moments 8: 16 bytes per parameter. In fp32 throughout: 4 + 4 + 8 = 16 as well.
//
// Activations kept for the backward pass, bytes per token and layer at 2 bytes per element,
// attention without a stored T x T map and without dropout:
//   residual in 2D, norm out 2D, q k v 2(HK + 2GK), attention out 2HK + 4H (statistics),
//   residual in 2D, norm out 2D, feed-forward 4F plain (before and after the activation) or
//   6F gated (gate, up, product).
// For H K = D and F = 4D that is 32 D; the often quoted 34 D (arXiv 2205.05198) has dropout masks.
// A mixture keeps its tokens once per expert visited: F is then active F_e + F_s, plus the router's
// scores (2 E). Latent attention keeps its latents, and queries, keys (H K) and values (H U).
// With full recomputation only the layer's input (2D) is kept, plus the activations of the layer
// being computed.
#pragma once

#include "shape/shape.h"

namespace fathom {

inline constexpr double kWeightBytes = 2, kGradientBytes = 2, kOptimizerBytes = 12;
inline constexpr double kTrainingBytesPerParameter =
    kWeightBytes + kGradientBytes + kOptimizerBytes;

struct TrainingMemory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;            // everything kept
  double activations_recompute = 0;  // full recomputation
  double logits = 0;                 // fp32, gradient written in place
  /// Weights, gradients and optimiser state.
  double state() const { return weights + gradients + optimizer; }
  double total() const { return state() + activations + logits; }
  double total_recompute() const { return state() + activations_recompute + logits; }
};

/// For a micro-batch of `tokens` tokens on one device, without sharding.
TrainingMemory count_training_memory(const Shape& shape, double tokens);

/// Activation bytes of one layer for one token; for a mixture, the mean over its layers.
double activation_bytes_per_token_layer(const Shape& shape);

/// Keys and values of one token: 2 L G K elements; with latent attention L (c + r).
double kv_bytes_per_token(const Shape& shape, double bytes_per_element = 2);

}  // namespace fathom
