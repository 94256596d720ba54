// Exact parameter counts of a shape, to the last bias.
//
//   attention  D H K + 2 D G K + H K D          (q, k and v for G kv heads, output)
//   latent     D q + q H K or D H K, D (c + r) + c H (K - r + U) + H U D
//              (ranks q and c, rotary part r, values of U)
//   ffn        m D F                            (m = 2 plain, 3 gated)
//   experts    m D (E F_e + F_s) + D E          (E routed, shared of F_s together, router)
//   norms      per layer n times g D, plus q/k norms; one final, perhaps one after the embedding
//   embedding  V D, once more for an untied head; T D for learned positions
//
// The papers' shorthand 12 L D^2 is given alongside the exact count, never instead of it.
#pragma once

#include <cstdint>

#include "shape/shape.h"

namespace fathom {

/// Matrix parameters of one layer over D^2 in the papers' count: 4 in attention, 8 in a plain
/// feed-forward of 4 D or a gated one of 8/3 D.
inline constexpr std::int64_t kPaperBlockCoefficient = 12;

/// 12 L D^2, what the papers call N; for whole and for real depths and widths.
template <class Number>
constexpr Number paper_parameters(Number layers, Number width) {
  return static_cast<Number>(kPaperBlockCoefficient) * layers * width * width;
}

struct ParameterCount {
  std::int64_t embedding = 0;
  std::int64_t positions = 0;
  std::int64_t attention_matrices = 0;
  std::int64_t ffn_matrices = 0;
  std::int64_t head = 0;  // 0 when tied
  std::int64_t norms = 0;
  std::int64_t biases = 0;  // of linear maps; a norm's bias counts as norm
  std::int64_t paper_12Ld2 = 0;
  std::int64_t router = 0;             // of a mixture, with the gate of its shared part
  std::int64_t inactive_matrices = 0;  // experts a token does not visit, part of ffn_matrices
  std::int64_t inactive_biases = 0;

  std::int64_t total() const {
    return embedding + positions + attention_matrices + ffn_matrices + router + head + norms +
           biases;
  }
  /// What one token uses: all but the experts it does not visit.
  std::int64_t active() const { return total() - inactive_matrices - inactive_biases; }
  std::int64_t active_non_embedding() const {
    return non_embedding() - inactive_matrices - inactive_biases;
  }
  /// Everything but the token embedding, the positions and an untied head matrix.
  std::int64_t non_embedding() const { return total() - embedding - positions - head; }
  /// Weight matrices of the blocks.
  std::int64_t block_matrices() const { return attention_matrices + ffn_matrices + router; }
  /// Those that one token is multiplied by.
  std::int64_t active_matrices() const { return block_matrices() - inactive_matrices; }
};

ParameterCount count_parameters(const Shape& shape);

/// Matrix parameters of one layer over D^2 for a request, before anything is rounded: 2 for
/// queries and output, 2 over the group for keys and values, and the feed-forward's.
double block_coefficient(const ShapeRequest& request);

}  // namespace fathom
