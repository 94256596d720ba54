// The self-attention network of eq. (3), arXiv 2006.12467, over any ring, from its definition:
//
//   y^{l,i} = sum_j sum_h < W^Q_h x^i, W^K_h x^j > W^O_h W^V_h x^j     (+ x^i with a residual)
//
// with j over all positions, or over j <= i under a causal mask; d_a = d/H. This is the slow
// definition that the Gram form (gram_grid.h) is tested against and that causal masks use.
// Memory: weights are 4 d^2 elements per layer; evaluation needs scratch of 3 N d + 2 d elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exact/prime_field.h"

namespace fathom::exact {

struct AttentionShape {
  std::size_t layers = 1;
  std::size_t width = 1;
  std::size_t heads = 1;
  std::size_t positions = 2;
  std::size_t output_position = 0;
  std::size_t output_component = 0;
  bool causal = false;
  bool residual = false;

  std::size_t head_size() const { return width / heads; }
};

/// Heads are stored one after another: row h d_a + a of query, key and value belongs to head h, and
/// so does column h d_a + a of output. All matrices are width x width, row by row.
template <class Weight>
struct AttentionLayer {
  std::vector<Weight> query;
  std::vector<Weight> key;
  std::vector<Weight> value;
  std::vector<Weight> output;
};

template <class Weight>
using AttentionWeights = std::vector<AttentionLayer<Weight>>;

AttentionWeights<PrimeField::Element> random_attention_weights(const AttentionShape& shape,
                                                               FieldSampler& sampler);
/// The same weights as balanced doubles, for lanes.
AttentionWeights<double> balanced_weights(const AttentionWeights<PrimeField::Element>& weights,
                                          const PrimeField& field);

/// Elements of scratch that attention_output needs.
inline std::size_t attention_scratch(const AttentionShape& shape) {
  return 3 * shape.positions * shape.width + 2 * shape.width;
}

/// One position of one layer into out[0..width): needs keys and values of all positions it sees.
template <class Ring, class Weight>
[[gnu::always_inline]] inline void attend(
    const Ring& ring, const AttentionShape& shape, const AttentionLayer<Weight>& layer,
    std::size_t i, const typename Ring::Element* x, const typename Ring::Element* keys,
    const typename Ring::Element* values, typename Ring::Element* query,
    typename Ring::Element* gathered, typename Ring::Element* out) {
  const std::size_t d = shape.width;
  const std::size_t size = shape.head_size();
  const std::size_t seen = shape.causal ? i + 1 : shape.positions;
  for (std::size_t a = 0; a < d; ++a) {
    query[a] = ring.dot(&layer.query[a * d], 1, x + i * d, d);
    gathered[a] = ring.zero();
  }
  for (std::size_t j = 0; j < seen; ++j) {
    for (std::size_t h = 0; h < d; h += size) {
      const auto score = ring.dot(query + h, 1, keys + j * d + h, size);
      for (std::size_t a = h; a < h + size; ++a) {
        gathered[a] = ring.add(gathered[a], ring.multiply(score, values[j * d + a]));
      }
    }
  }
  for (std::size_t a = 0; a < d; ++a) {
    out[a] = ring.dot(&layer.output[a * d], 1, gathered, d);
    if (shape.residual) out[a] = ring.add(out[a], x[i * d + a]);
  }
}

/// The network's output component. `x` holds the inputs, position after position, and is
/// overwritten; `scratch` has attention_scratch(shape) elements.
template <class Ring, class Weight>
[[gnu::always_inline]] inline typename Ring::Element attention_output(
    const Ring& ring, const AttentionShape& shape, const AttentionWeights<Weight>& weights,
    typename Ring::Element* x, typename Ring::Element* scratch) {
  const std::size_t d = shape.width;
  const std::size_t all = shape.positions * d;
  auto* keys = scratch;
  auto* values = keys + all;
  auto* next = values + all;
  auto* query = next + all;
  auto* gathered = query + d;
  for (std::size_t l = 0; l < shape.layers; ++l) {
    const AttentionLayer<Weight>& layer = weights[l];
    for (std::size_t j = 0; j < shape.positions; ++j) {
      for (std::size_t a = 0; a < d; ++a) {
        keys[j * d + a] = ring.dot(&layer.key[a * d], 1, x + j * d, d);
        values[j * d + a] = ring.dot(&layer.value[a * d], 1, x + j * d, d);
      }
    }
    const bool last = l + 1 == shape.layers;
    const std::size_t first = last ? shape.output_position : 0;
    const std::size_t end = last ? shape.output_position + 1 : shape.positions;
    for (std::size_t i = first; i < end; ++i) {
      attend(ring, shape, layer, i, x, keys, values, query, gathered, next + i * d);
    }
    std::copy(next, next + all, x);
  }
  return x[shape.output_position * d + shape.output_component];
}

}  // namespace fathom::exact
