// Floating-point operations, two per multiply-add.
//
// A matrix of P weights costs 2 P per token forward and 4 P backward; in a mixture only the experts
// that a token visits count. Causal attention lets token t see t positions, (T+1)/2 on average, and
// a kernel that skips the masked half does exactly that work: scores and weighted sum cost 2 H K
// each per position seen. Norms, activations and the softmax itself (order L D and L H T per token)
// are left out, as is usual in the field.
#pragma once

#include "shape/shape.h"

namespace fathom {

enum class AttentionSpan { causal, full };

/// Positions that a token sees on average in a context of T: (T + 1) / 2 under a causal mask.
constexpr double mean_positions_seen(double context, AttentionSpan span = AttentionSpan::causal) {
  return span == AttentionSpan::causal ? (context + 1) / 2 : context;
}

struct FlopCount {
  double forward_per_token = 0;
  double train_per_token = 0;            // 3 x forward
  double train_recompute_per_token = 0;  // with the blocks' forward pass repeated
  double attention_share = 0;            // of the forward pass
  double six_n_per_token = 0;            // the rule of thumb: 6 x active non-embedding parameters
};
FlopCount count_flops(const Shape& shape, AttentionSpan span = AttentionSpan::causal);

/// train_per_token for real-valued depth and width with H K = D and block matrices c L D^2: used to
/// solve for a compute budget before anything is rounded.
double train_flops_per_token(double layers, double width, double block_coefficient, double vocab,
                             double context);

/// One token decoded after `cached` earlier ones.
double decode_flops(const Shape& shape, double cached);

}  // namespace fathom
