#include "exact/rank_setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/counts.h"
#include "core/error.h"
#include "core/text.h"
#include "exact/partition.h"
#include "theory/head_rank.h"
#include "theory/structural_rank.h"
#include "theory/three_layer_defect.h"

namespace fathom::exact {
namespace {

constexpr std::size_t kMaxLayers = 8;  // C = 3280; the work grows at least with C^2

[[noreturn]] void refuse(const std::string& message) {
  throw ConfigError(message);
}

void validate_slices(const RankSetting& s) {
  if (s.stream < s.width || s.stream > kMaxRankWidth) {
    refuse(fmt::format("a stream of width {} cannot be read in slices of {}", s.stream, s.width));
  }
  if (s.stride < 1 || s.stride > s.stream) {
    refuse(fmt::format("the slice must move by 1 to {} a layer, not {}", s.stream, s.stride));
  }
  if (!s.residual || s.causal || s.embedding_rank != 0) {
    refuse("slices of a stream are computed with residuals, without a mask and an embedding");
  }
}

void validate_attention(const RankSetting& s) {
  if (s.layers > kMaxLayers) {
    refuse(
        fmt::format("layers must be at most {} for an exact rank, not {}", kMaxLayers, s.layers));
  }
  if (s.heads < 1 || s.width % s.heads != 0) {
    refuse(fmt::format("heads must divide the width: {} does not divide {}", s.heads, s.width));
  }
  if (s.output_position >= s.positions) {
    refuse(fmt::format("output position {} does not exist; positions count from 0 to {}",
                       s.output_position, s.positions - 1));
  }
  if (s.output_component >= s.position_dimension()) {
    refuse(fmt::format("output component {} does not exist; components count from 0 to {}",
                       s.output_component, s.position_dimension() - 1));
  }
  if (s.stream != 0) validate_slices(s);
  if (s.embedding_rank > s.width) {
    refuse(fmt::format("embedding rank {} exceeds the width {}", s.embedding_rank, s.width));
  }
}

/// The digit of the side that is called A: the one with the output position.
char side_a(const RankSetting& s) {
  return s.family == Family::attention ? s.partition[s.output_position] : '0';
}

/// binom(n, k) for a small k.
mpz_class binomial(std::size_t n, std::size_t k) {
  mpz_class value;
  mpz_bin_uiui(value.get_mpz_t(), n, k);
  return value;
}

using Series = std::vector<mpz_class>;

Series product(const Series& f, const Series& g) {
  Series result(f.size(), 0);
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (f[i] == 0) continue;
    for (std::size_t j = 0; i + j < g.size(); ++j) result[i + j] += f[i] * g[j];
  }
  return result;
}

/// Forms of degree 2k (+1 when odd) in `dimension` variables, k = 0..C.
Series forms(std::size_t dimension, std::size_t degree, bool odd) {
  Series series;
  for (std::size_t k = 0; k <= degree; ++k) {
    series.push_back(binomial(2 * k + (odd ? 1 : 0) + dimension - 1, dimension - 1));
  }
  return series;
}

std::vector<mpz_class> causal_bounds(const RankSetting& s) {
  const auto C = static_cast<std::size_t>(theory::gram_degree(static_cast<std::int64_t>(s.layers)));
  const Series even = forms(s.input_dimension(), C, false);
  Series a = forms(s.input_dimension(), C, true);
  Series b(C + 1, 0);
  b[0] = 1;
  // Positions after the output never reach it.
  for (std::size_t j = 0; j < s.output_position; ++j) {
    Series& side = s.partition[j] == side_a(s) ? a : b;
    side = product(side, even);
  }
  std::vector<mpz_class> bounds;
  for (std::size_t k = 0; k <= C; ++k) bounds.push_back(std::min(a[C - k], b[k]));
  return bounds;
}

std::vector<theory::DegreeBlock> gram_blocks(const RankSetting& s) {
  const auto count = std::count(s.partition.begin(), s.partition.end(), side_a(s));
  return theory::degree_blocks({static_cast<std::int64_t>(s.layers),
                                static_cast<std::int64_t>(s.input_dimension()), count,
                                static_cast<std::int64_t>(s.positions) - count});
}

std::vector<mpz_class> gram_bounds(const RankSetting& s) {
  std::vector<mpz_class> bounds;
  for (const auto& block : gram_blocks(s)) bounds.push_back(block.bound());
  return bounds;
}

/// Smallest product of cut bonds with the node on side A ([0]) or B ([1]).
using Cut = std::array<mpz_class, 2>;

/// A child's cut seen through the bond above it.
Cut through(const Cut& child, const mpz_class& bond) {
  return {std::min(child[0], mpz_class(child[1] * bond)),
          std::min(child[1], mpz_class(child[0] * bond))};
}

/// An input position behind its r x M matrix: on its own side for free, else a cut bond.
Cut leaf(char digit, std::size_t inputs, std::size_t channels) {
  const mpz_class bond = std::min(inputs, channels);
  return digit == '0' ? Cut{1, bond} : Cut{bond, 1};
}

mpz_class conv_bound(const RankSetting& s) {
  std::vector<Cut> nodes;
  for (const std::size_t j : pooling_order(s.conv())) {
    nodes.push_back(leaf(s.partition[j], s.inputs, s.width));
  }
  for (; nodes.size() > 1; nodes.resize(nodes.size() / 2)) {
    for (std::size_t j = 0; j < nodes.size() / 2; ++j) {
      const Cut left = through(nodes[2 * j], s.width);
      const Cut right = through(nodes[2 * j + 1], s.width);
      nodes[j] = {left[0] * right[0], left[1] * right[1]};
    }
  }
  return std::min(nodes[0][0], nodes[0][1]);
}

mpz_class chain_bound(const RankSetting& s) {
  Cut state = leaf(s.partition[0], s.inputs, s.width);
  for (std::size_t t = 1; t < s.positions; ++t) {
    const Cut carried = through(state, s.width);
    const Cut input = leaf(s.partition[t], s.inputs, s.width);
    state = {carried[0] * input[0], carried[1] * input[1]};
  }
  return std::min(state[0], state[1]);
}

mpz_class recurrent_bound(const RankSetting& s) {
  std::array<mpz_class, 2> dimension{1, 1};
  for (std::size_t t = 0; t < s.positions; ++t) {
    const auto degree = static_cast<std::size_t>(recurrent_degree(s.recurrent(), t));
    dimension[s.partition[t] == '0' ? 0 : 1] *= binomial(degree + s.inputs - 1, s.inputs - 1);
  }
  const mpz_class monomials = std::min(dimension[0], dimension[1]);
  return s.layers == 1 ? std::min(monomials, chain_bound(s)) : monomials;
}

double recurrent_total_degree(const RecurrentShape& shape) {
  std::vector<double> state(shape.layers, 1.0);  // degree of h^{t,l}; the initial state is a weight
  for (std::size_t t = 0; t < shape.positions; ++t) {
    double below = 1;
    for (double& degree : state) below = degree = degree + 1 + below + 1;
  }
  return state.back() + 1;
}

}  // namespace

AttentionShape RankSetting::attention() const {
  return {layers, width, heads, positions, output_position, output_component, causal, residual};
}

SlicedShape RankSetting::sliced() const {
  return {attention(), stream, stride};
}

ConvShape RankSetting::conv() const {
  return {positions, inputs, width, pooling};
}

RecurrentShape RankSetting::recurrent() const {
  return {positions, inputs, width, layers};
}

std::size_t RankSetting::position_dimension() const {
  if (family != Family::attention) return inputs;
  return stream == 0 ? width : stream;
}

std::size_t RankSetting::input_dimension() const {
  return embedding_rank == 0 ? position_dimension() : embedding_rank;
}

std::string RankSetting::key() const {
  if (family == Family::conv) {
    return fmt::format("conv r={} M={} N={} p={} pooling={}", width, inputs, positions, partition,
                       name_of(pooling));
  }
  if (family == Family::recurrent) {
    return fmt::format("recurrent L={} R={} M={} N={} p={}", layers, width, inputs, positions,
                       partition);
  }
  std::string key = fmt::format("attention L={} d={} H={} N={} p={} i={} c={}", layers, width,
                                heads, positions, partition, output_position, output_component);
  if (causal) key += " causal";
  if (residual) key += " residual";
  if (embedding_rank != 0) key += fmt::format(" r={}", embedding_rank);
  if (stream != 0) key += fmt::format(" D={} stride={}", stream, stride);
  return key;
}

void validate(const RankSetting& s) {
  if (s.layers < 1 || s.width < 1) refuse("layers and width must be at least 1");
  if (s.width > kMaxRankWidth || s.positions > kMaxRankWidth) {
    refuse(fmt::format("width and positions must be at most {} for an exact rank", kMaxRankWidth));
  }
  if (s.positions < 2) {
    refuse(fmt::format("a partition needs at least 2 positions, not {}", s.positions));
  }
  if (parse_partition(s.partition, s.positions) != s.partition) {
    throw InternalError("the partition of a setting must be digits");
  }
  if (s.family == Family::attention) return validate_attention(s);
  if (s.inputs < 1) refuse("the input dimension must be at least 1");
  if (s.family == Family::conv && (s.positions & (s.positions - 1)) != 0) {
    refuse(
        fmt::format("a convolutional circuit pools pairs: positions must be a power of two, "
                    "not {}",
                    s.positions));
  }
  if (s.family == Family::recurrent && (s.layers > 3 || s.positions > 64)) {
    refuse("a recurrent circuit is computed for depth 1 to 3 and at most 64 positions");
  }
}

theory::SeparationBounds printed_bounds(const RankSetting& s) {
  return theory::separation_bounds({static_cast<std::int64_t>(s.layers),
                                    static_cast<std::int64_t>(s.width),
                                    static_cast<std::int64_t>(s.heads)});
}

std::vector<mpz_class> structural_bounds(const RankSetting& s) {
  switch (s.family) {
    case Family::attention:
      return s.causal ? causal_bounds(s) : gram_bounds(s);
    case Family::conv:
      return {conv_bound(s)};
    case Family::recurrent:
      return {recurrent_bound(s)};
  }
  throw InternalError("unknown family");
}

std::vector<mpz_class> proved_bounds(const RankSetting& s) {
  std::vector<mpz_class> bounds = structural_bounds(s);
  if (s.family != Family::attention || s.causal || s.residual) return bounds;
  const std::vector<mpz_class> by_heads = theory::head_degree_bounds(
      static_cast<std::int64_t>(s.layers), static_cast<std::int64_t>(s.width),
      static_cast<std::int64_t>(s.heads), static_cast<std::int64_t>(s.input_dimension()));
  for (std::size_t k = 0; k < bounds.size(); ++k) bounds[k] = std::min(bounds[k], by_heads[k]);
  if (s.layers == 3 && s.heads == 1) {
    const std::size_t k = theory::kDefectDegree;
    const mpz_class reached =
        gram_blocks(s)[k].side_b -
        theory::three_layer_defect(static_cast<std::int64_t>(s.input_dimension()));
    bounds[k] = std::min(bounds[k], reached);
  }
  return bounds;
}

bool splits_by_degree(const RankSetting& s) {
  return s.family == Family::attention && !s.residual;
}

double total_degree(const RankSetting& s) {
  const double n = as_double(s.positions);
  if (s.family == Family::conv) return n + (2 * n - 1);
  if (s.family == Family::recurrent) return recurrent_total_degree(s.recurrent());
  // w_{l+1} = 3 w_l + 4 weights, 3^L = 2C + 1 inputs (each through the embedding, if there is one)
  const double C = as_double(theory::gram_degree(static_cast<std::int64_t>(s.layers)));
  return 4 * C + (2 * C + 1) * (s.embedding_rank == 0 ? 1 : 2);
}

}  // namespace fathom::exact
