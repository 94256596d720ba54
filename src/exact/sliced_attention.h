// Partial width (the discussion of arXiv 2006.12467): a residual stream of width D of which layer l
// reads and writes only d < D coordinates, a slice that moves by `stride` from layer to layer and
// wraps around.
//
//   s = coordinates l stride, ..., l stride + d - 1 (mod D),   x_s^i <- x_s^i + attention(x_s)^i
//
// A layer has the weights and the work of a network of width d. Its map is T(S) with S the slice's
// block of the Gram matrix, extended by zeros: R_max of width D bounds the rank (docs/theory.md,
// section 5).
#pragma once

#include <algorithm>
#include <cstddef>

#include "exact/attention_network.h"

namespace fathom::exact {

struct SlicedShape {
  AttentionShape layer;    // of one layer, width d; its residual is always there
  std::size_t stream = 1;  // D
  std::size_t stride = 1;

  std::size_t first(std::size_t l) const { return l * stride % stream; }
};

inline std::size_t sliced_scratch(const SlicedShape& shape) {
  const std::size_t slice = shape.layer.positions * shape.layer.width;
  return 4 * slice + 2 * shape.layer.width;
}

/// The output component, counted in the stream, of the output position. `x` holds the inputs, D per
/// position, and is overwritten.
template <class Ring, class Weight>
[[gnu::always_inline]] inline typename Ring::Element sliced_output(
    const Ring& ring, const SlicedShape& shape, const AttentionWeights<Weight>& weights,
    typename Ring::Element* x, typename Ring::Element* scratch) {
  const AttentionShape& layer_shape = shape.layer;
  const std::size_t d = layer_shape.width;
  const std::size_t n = layer_shape.positions;
  auto* slice = scratch;
  auto* keys = slice + n * d;
  auto* values = keys + n * d;
  auto* next = values + n * d;
  auto* query = next + n * d;
  auto* gathered = query + d;
  for (std::size_t l = 0; l < layer_shape.layers; ++l) {
    const auto place = [&](std::size_t j, std::size_t a) {
      return j * shape.stream + (shape.first(l) + a) % shape.stream;
    };
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t a = 0; a < d; ++a) slice[j * d + a] = x[place(j, a)];
    }
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t a = 0; a < d; ++a) {
        keys[j * d + a] = ring.dot(&weights[l].key[a * d], 1, slice + j * d, d);
        values[j * d + a] = ring.dot(&weights[l].value[a * d], 1, slice + j * d, d);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      attend(ring, layer_shape, weights[l], i, slice, keys, values, query, gathered, next + i * d);
    }
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t a = 0; a < d; ++a) x[place(j, a)] = next[j * d + a];
    }
  }
  return x[layer_shape.output_position * shape.stream + layer_shape.output_component];
}

}  // namespace fathom::exact
