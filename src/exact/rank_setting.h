// One question about a separation rank: a network family, its size, and a partition.
#pragma once

#include <gmpxx.h>

#include <cstddef>
#include <string>
#include <vector>

#include "exact/arithmetic_circuit.h"
#include "exact/attention_network.h"
#include "exact/sliced_attention.h"
#include "theory/separation_bounds.h"

namespace fathom::exact {

/// Nothing wider or longer is computed; memory runs out long before.
inline constexpr std::size_t kMaxRankWidth = 4096;

enum class Family { attention, conv, recurrent };
constexpr auto enum_names(Family) {
  return std::array{"attention", "conv", "recurrent"};
}

struct RankSetting {
  Family family = Family::attention;
  std::size_t layers = 1;  // conv: log2 N, whatever is given here
  std::size_t width = 1;   // attention: d; circuits: channels
  std::size_t positions = 2;
  std::string partition;  // digits
  // attention
  std::size_t heads = 1;
  std::size_t output_position = 0;
  std::size_t output_component = 0;
  bool causal = false;
  bool residual = false;
  std::size_t embedding_rank = 0;  // 0: no embedding, inputs are free in all d dimensions
  std::size_t stream = 0;          // D of a stream that layers of width d share in slices; 0: none
  std::size_t stride = 0;          // by how much the slice moves per layer
  // circuits
  std::size_t inputs = 0;  // M
  Pooling pooling = Pooling::contiguous;

  AttentionShape attention() const;
  SlicedShape sliced() const;
  ConvShape conv() const;
  RecurrentShape recurrent() const;
  /// Dimension of a position: d, or D of a sliced stream, or M.
  std::size_t position_dimension() const;
  /// Dimension of the inputs that are free to choose.
  std::size_t input_dimension() const;
  /// Identifies the setting in a record file, e.g. "attention L=2 d=4 H=1 N=4 p=0011 i=3".
  std::string key() const;
};

/// ConfigError in one line for anything meaningless.
void validate(const RankSetting& setting);

/// What the printed theorems say about an attention network of this size.
theory::SeparationBounds printed_bounds(const RankSetting& setting);

/// Upper bounds on the rank that follow from the structure alone, one per degree k in the B inputs
/// (docs/theory.md): for attention k = 0..C, for the circuits a single one.
///   bidirectional: min(A(C-k), B(k)) of theory/structural_rank.h;
///   causal: polynomials even in every position (odd in the output's), counted position by
///   position; conv and depth-1 recurrent: the smallest cut through the tree or the chain; deeper
///   recurrent: monomials of the fixed degree of each position.
/// The sum bounds the separation rank, also with residuals, where the degrees mix.
std::vector<mpz_class> structural_bounds(const RankSetting& setting);

/// The sharpest bounds that are proved, block by block: for bidirectional attention without
/// residuals also those that take the heads into account (theory/head_rank.h) and the defect of
/// three layers (theory/three_layer_defect.h); else the structural bounds.
std::vector<mpz_class> proved_bounds(const RankSetting& setting);

/// Whether y is homogeneous in the B inputs degree by degree (no residual), so that it splits.
bool splits_by_degree(const RankSetting& setting);

/// Total degree of the output in weights and inputs together, for the Schwartz-Zippel lemma.
double total_degree(const RankSetting& setting);

}  // namespace fathom::exact
