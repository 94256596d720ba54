// What is done to queries, keys and values between the GEMM that makes them and attention:
// qkv [B T, (H + 2 G) K] as attention reads it -> y of the same shape. Columns that are not
// mentioned are copied.
//
//   smear       k'_t = s k_t + (1 - s) k_(t-1), s = sigmoid(w_g) for key head g, k'_0 = k_0
//               (Olsson et al. 2022, arXiv 2209.11895)                             w [1, G]
//   project     k'_r = sum_t w_rt k_t, v'_r = sum_t w_rt v_t for r < R, zeros beyond; attention
//               then sees only the keys below R (Linformer, arXiv 2006.04768, with one projection
//               for keys, values and heads)                                        w [R, T]
//   synthesise  q' = relu(q), k'_t = w_t whatever the token: <q', k'> is a network with one hidden
//               layer that gives the scores of a token (dense Synthesizer, arXiv 2005.00743)
//                                                                                  w [T, G K]
//   sort        blocks of positions are mixed: k'_(I, t) = sum_J S_IJ k_(J, t), v likewise; S
//               (keys_sort.h) has rows and columns that nearly sum to 1 and depends on the mean
//               keys of blocks (Sinkhorn, arXiv 2002.11296); attention then sees only the query's
//               own block                                                  w [T / block, G K]
//
// Backward:
//   smear       dk_t = s dk'_t + (1 - s) dk'_(t+1) (s = 1 at t = 0),
//               dw_g = s (1 - s) sum over B and t > 0 of <dk'_t, k_t - k_(t-1)>
//   project     dk_t = sum_r w_rt dk'_r, dw_rt = sum over B of <dk'_r, k_t>; v likewise, added
//   synthesise  dq = dq' where q > 0, dk = 0, dw_t = sum over B of dk'_t
//   sort        dk_(J, t) = sum_I S_IJ dk'_(I, t), dS_IJ = sum_t <dk'_(I, t), k_(J, t)>; v
//               likewise; then back through the rounds to the mean keys and w
#pragma once

#include "core/enum_names.h"
#include "engine/ops/keys/keys_kind.h"
#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

constexpr auto enum_names(KeyMap) {
  return std::array{"smear", "project", "synthesise", "sort"};
}

struct KeyShape {
  std::int64_t batch = 1;      // B
  std::int64_t context = 1;    // T
  std::int64_t heads = 1;      // H
  std::int64_t key_heads = 1;  // G
  std::int64_t head_size = 1;  // K
  KeyMap map = KeyMap::smear;
  std::int64_t block = 1;  // of `sort`, divides T

  constexpr std::int64_t qkv_cols() const { return (heads + 2 * key_heads) * head_size; }
  constexpr std::int64_t key_column() const { return heads * head_size; }
  constexpr std::int64_t value_column() const { return (heads + key_heads) * head_size; }
};

struct MapKeys {
  TensorId qkv, weight, y;
  KeyShape shape;

  Uses uses() const { return {{qkv, weight}, {y}}; }
};

struct MapKeysBackward {
  TensorId dy, qkv, weight;
  TensorId d_qkv, d_weight;
  GradMode d_weight_mode = GradMode::overwrite;
  KeyShape shape;

  Uses uses() const { return {{dy, qkv, weight}, {d_qkv, d_weight}}; }
};

void check(const MapKeys& op, const StepPlan& plan);
void differentiate(const MapKeys& op, Differentiator& out);

}  // namespace fathom::engine
