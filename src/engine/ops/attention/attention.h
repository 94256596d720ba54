// Attention of every query over the keys its mask allows, for B sequences of T positions.
//
// qkv [B T, (H + 2 G) K] holds H query heads, then G key heads, then G value heads of size K;
// query head h uses key head h G / H (grouped-query attention when G < H). With rotary positions
// q and k are first rotated: (x_i, x_{i+K/2}) by the angle t base^(-2i/K) (arXiv 2104.09864).
// s_ij = scale <q_i, k_j>; the weights of row i are
//
//   softmax  a_ij = exp(s_ij) / sum_j exp(s_ij)
//   none     a_ij = s_ij                                        (eq. (3) of arXiv 2006.12467)
//   linear   a_ij = <f(q_i), f(k_j)> / sum_j <f(q_i), f(k_j)>,  f = elu + 1   (arXiv 2006.16236)
//
// and y_i = sum_j a_ij v_j. Masks: causal j <= i, strict j < i, bidirectional all j; a window w > 0
// keeps only |i - j| < w. A row without any key gives y = 0.
//
// No T x T matrix is kept: forward stores one number per row, `stats` f32 [B H, T] (softmax: the
// log of the sum; linear: the sum), backward recomputes the weights block by block from it.
// Backward, with p = dy_i . v_j and delta_i = sum_j a_ij p_ij = <dy_i, y_i>:
//   dv_j = sum_i a_ij dy_i;   ds_ij = a_ij (p_ij - delta_i)  (softmax),  p_ij  (none),
//   (p_ij - delta_i) / sum_i  (linear);   dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij
//   q_i, then rotated back, or through f' for linear attention.
#pragma once

#include <algorithm>

#include "core/enum_names.h"
#include "engine/ops/attention/attention_kind.h"
#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

constexpr auto enum_names(AttentionKind) {
  return std::array{"softmax", "none", "linear"};
}
constexpr auto enum_names(MaskKind) {
  return std::array{"causal", "bidirectional", "strict"};
}

struct AttentionShape {
  std::int64_t batch = 1;      // B
  std::int64_t context = 1;    // T
  std::int64_t heads = 1;      // H
  std::int64_t key_heads = 1;  // G, divides H
  std::int64_t head_size = 1;  // K
  AttentionKind kind = AttentionKind::softmax;
  MaskKind mask = MaskKind::causal;
  std::int64_t window = 0;  // 0: no limit
  float scale = 1;
  float rotary_base = 0;  // 0: not rotary

  std::int64_t qkv_cols() const { return (heads + 2 * key_heads) * head_size; }
  bool allows(std::int64_t query, std::int64_t key) const {
    if (mask == MaskKind::causal && key > query) return false;
    if (mask == MaskKind::strict && key >= query) return false;
    const std::int64_t distance = query < key ? key - query : query - key;
    return window == 0 || distance < window;
  }
  /// Of queries and keys, in one sequence.
  std::int64_t allowed_pairs() const {
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < context; ++i) {
      std::int64_t first = 0, last = context - 1;
      if (mask != MaskKind::bidirectional) last = mask == MaskKind::causal ? i : i - 1;
      if (window > 0) {
        first = std::max(first, i - window + 1);
        last = std::min(last, i + window - 1);
      }
      pairs += std::max<std::int64_t>(0, last - first + 1);
    }
    return pairs;
  }
};

struct Attention {
  TensorId qkv, y, stats;
  AttentionShape shape;

  Uses uses() const { return {{qkv}, {y, stats}}; }
};

struct AttentionBackward {
  TensorId dy, qkv, y, stats;
  TensorId d_qkv;
  AttentionShape shape;

  Uses uses() const { return {{dy, qkv, y, stats}, {d_qkv}}; }
};

void check(const Attention& op, const StepPlan& plan);
void differentiate(const Attention& op, Differentiator& out);

}  // namespace fathom::engine
