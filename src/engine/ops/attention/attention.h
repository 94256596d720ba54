// Attention of every query over the keys its mask allows, for B sequences of T positions.
//
// qkv [B T, (H + 2 G) K] holds H query heads, then G key heads, then G value heads of size K;
// query head h uses key head h G / H (grouped-query attention when G < H). With rotary positions
// q and k are first rotated: (x_i, x_{i+K/2}) by the angle t base^(-2i/K) (arXiv 2104.09864).
// s_ij = scale <q_i, k_j>; the weights of row i are
//
//   softmax     a_ij = exp(s_ij) / sum_j exp(s_ij)
//   none        a_ij = s_ij                                     (eq. (3) of arXiv 2006.12467)
//   normalised  a_ij = (s_ij - m_i) / sqrt(var_i + 1e-5), mean and variance of s_i over the keys
//               that i sees                                     (NAP, arXiv 2005.09561)
//   linear      a_ij = <f(q_i), f(k_j)> / sum_j <f(q_i), f(k_j)>,  f = elu + 1 (arXiv 2006.16236)
//   performer   the same with F random features f(x)_m = exp(<w_m, x'> - |x'|^2 / 2), x' = sqrt(
//               scale) x: the expectation over w is softmax's (arXiv 2009.14794)
//
// and y_i = sum_j a_ij v_j. Masks: causal j <= i, strict j < i, bidirectional all j. Of these keys
// a pattern keeps some: those less than `window` away, those at a multiple of `stride` (arXiv
// 1904.10509), those of the query's own block, the first `global_tokens`, which also see all (arXiv
// 2004.05150), and those in one of the `random_blocks` blocks drawn for the block of the query
// (arXiv 2007.14062). It keeps the union of what is set, all if nothing is; of these the keys below
// `key_limit`. A row without any key gives y = 0.
//
// No T x T matrix is kept: forward stores a few numbers per row in `stats` (softmax: the log of the
// sum; features: the sum; normalised: mean, 1 / sqrt(...), count), backward recomputes the weights
// block by block from them. With p = dy_i . v_j and delta_i = sum_j a_ij p_ij = <dy_i, y_i>:
//   dv_j = sum_i a_ij dy_i;   ds_ij = a_ij (p_ij - delta_i)  (softmax),  p_ij  (none),
//   (p_ij - mean_j p_ij - a_ij delta_i / count_i) / sqrt(...)  (normalised),
//   (p_ij - delta_i) / sum_i  (features);   dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij
//   q_i, then rotated back, or through f' of the features.
//
// Features without a window or pattern take time linear in T: with v' = (v, 1) and the states
// S = sum_j f(k_j) v'_j^T over the keys seen so far, y'_i = f(q_i)^T S. Backward has dy'_i =
// (dy_i, -delta_i) / sum_i: df(q_i) = S dy'_i, and with R = sum_i f(q_i) dy'_i^T over the queries
// that see j, df(k_j) = R v'_j and dv_j the first K of R^T f(k_j).
#pragma once

#include "core/enum_names.h"
#include "engine/ops/attention/attention_kind.h"
#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

constexpr auto enum_names(AttentionKind) {
  return std::array{"softmax", "none", "linear", "performer", "normalised"};
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
  float rotary_base = 0;                                          // 0: not rotary
  std::int64_t stride = 0, global_tokens = 0, random_blocks = 0;  // 0: not in the pattern
  bool own_block = false;
  std::int64_t block = 64;     // positions of a block of the pattern
  std::int64_t key_limit = 0;  // 0: none
  std::int64_t features = 0;   // F of performer
  std::uint32_t seed = 0;      // for what is drawn

  std::int64_t qkv_cols() const { return (heads + 2 * key_heads) * head_size; }
  /// Numbers per row of `stats` [B H, T * stats_of_row()].
  std::int64_t stats_of_row() const { return kind == AttentionKind::normalised ? 3 : 1; }
  bool has_features() const {
    return kind == AttentionKind::linear || kind == AttentionKind::performer;
  }
  /// Size of a mapped query or key.
  std::int64_t feature_size() const {
    return kind == AttentionKind::performer ? features : head_size;
  }
  /// Whether time is linear in the context.
  bool sums_states() const { return has_features() && window == 0 && !has_pattern(); }
  /// Whether a band is not enough to give the keys (engine/ops/attention/attention_pattern.h).
  bool has_pattern() const {
    return stride > 0 || own_block || global_tokens > 0 || random_blocks > 0 || key_limit > 0;
  }
  bool allows(std::int64_t query, std::int64_t key) const {
    return mask_allows(query, key) &&
           (near(query, key) || (random_blocks > 0 && draws_block(query / block, key / block)));
  }
  /// Pairs of queries and keys, in one sequence.
  std::int64_t allowed_pairs() const;

  bool mask_allows(std::int64_t query, std::int64_t key) const {
    if (key_limit > 0 && key >= key_limit) return false;
    if (mask == MaskKind::causal && key > query) return false;
    return mask != MaskKind::strict || key < query;
  }
  /// All of the pattern except what is drawn.
  bool near(std::int64_t query, std::int64_t key) const {
    const std::int64_t distance = query < key ? key - query : query - key;
    if (window + stride + global_tokens + random_blocks == 0 && !own_block) return true;
    return distance < window || (stride > 0 && distance % stride == 0) ||
           (own_block && query / block == key / block) || query < global_tokens ||
           key < global_tokens;
  }
  /// Whether a block of keys is drawn for a block of queries: it has one of the smallest random
  /// numbers among the others (without a mask) or the earlier ones.
  bool draws_block(std::int64_t query_block, std::int64_t key_block) const;
};

/// The directions w of random features, [F, K]: normal, orthogonal within groups of K.
std::vector<float> feature_directions(const AttentionShape& shape);

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
