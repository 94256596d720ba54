// Arithmetic circuits whose separation rank the depth literature compares with attention's.
//
// Convolutional (arXiv 1509.05009, 1605.06743): input vectors of dimension M, a 1x1 convolution to
// r channels, then log2 N rounds of channel-wise product over a pair of nodes followed by a 1x1
// convolution (to one channel at the top). Contiguous pooling pairs neighbours; mirror pooling
// first pairs position j with N-1-j, then neighbours. Weights are shared along the sequence.
//
// Recurrent (arXiv 1710.09431): h^{t,l} = (W^{H,l} h^{t-1,l}) * (W^{I,l} h^{t,l-1}) channel-wise,
// h^{t,0} = x^t; the output is a linear form of the top state after the last position.
//
// Both are multihomogeneous: every position enters with a fixed degree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/enum_names.h"
#include "exact/prime_field.h"

namespace fathom::exact {

enum class Pooling { contiguous, mirror };
constexpr auto enum_names(Pooling) {
  return std::array{"contiguous", "mirror"};
}

struct ConvShape {
  std::size_t positions = 2;  // a power of two
  std::size_t inputs = 1;     // M
  std::size_t channels = 1;   // r
  Pooling pooling = Pooling::contiguous;

  std::size_t rounds() const;  // log2 N
};

struct RecurrentShape {
  std::size_t positions = 2;
  std::size_t inputs = 1;    // M
  std::size_t channels = 1;  // R
  std::size_t layers = 1;
};

/// layers[0]: r x M; layers[1 .. rounds-1]: r x r; the last: 1 x r.
template <class Weight>
using ConvWeights = std::vector<std::vector<Weight>>;

template <class Weight>
struct RecurrentLayer {
  std::vector<Weight> hidden;   // R x R
  std::vector<Weight> input;    // R x M in the first layer, R x R above
  std::vector<Weight> initial;  // R
};
template <class Weight>
struct RecurrentWeights {
  std::vector<RecurrentLayer<Weight>> layers;
  std::vector<Weight> output;  // R
};

ConvWeights<PrimeField::Element> random_conv_weights(const ConvShape& shape, FieldSampler& sampler);
RecurrentWeights<PrimeField::Element> random_recurrent_weights(const RecurrentShape& shape,
                                                               FieldSampler& sampler);
ConvWeights<double> balanced_weights(const ConvWeights<PrimeField::Element>& weights,
                                     const PrimeField& field);
RecurrentWeights<double> balanced_weights(const RecurrentWeights<PrimeField::Element>& weights,
                                          const PrimeField& field);

/// The order in which positions are combined: neighbours of this list are pooled first.
std::vector<std::size_t> pooling_order(const ConvShape& shape);
/// How often position t = 0..N-1 enters the recurrent output as a factor: binom(N-1-t+l-1, l-1).
double recurrent_degree(const RecurrentShape& shape, std::size_t position);

/// y = W x over a ring.
template <class Ring, class Weight>
[[gnu::always_inline]] inline void apply(const Ring& ring, const std::vector<Weight>& matrix,
                                         std::size_t rows, std::size_t columns,
                                         const typename Ring::Element* x,
                                         typename Ring::Element* y) {
  for (std::size_t i = 0; i < rows; ++i) y[i] = ring.dot(&matrix[i * columns], 1, x, columns);
}

inline std::size_t conv_scratch(const ConvShape& shape) {
  return (shape.positions + 1) * shape.channels;
}

/// `x`: inputs position after position; `order`: pooling_order(shape).
template <class Ring, class Weight>
[[gnu::always_inline]] inline typename Ring::Element conv_output(
    const Ring& ring, const ConvShape& shape, const ConvWeights<Weight>& weights,
    const std::vector<std::size_t>& order, const typename Ring::Element* x,
    typename Ring::Element* scratch) {
  const std::size_t r = shape.channels;
  auto* product = scratch + shape.positions * r;
  for (std::size_t j = 0; j < shape.positions; ++j) {
    apply(ring, weights[0], r, shape.inputs, x + order[j] * shape.inputs, scratch + j * r);
  }
  std::size_t layer = 1;
  for (std::size_t nodes = shape.positions / 2; nodes >= 1; nodes /= 2, ++layer) {
    for (std::size_t j = 0; j < nodes; ++j) {
      for (std::size_t c = 0; c < r; ++c) {
        product[c] = ring.multiply(scratch[2 * j * r + c], scratch[(2 * j + 1) * r + c]);
      }
      apply(ring, weights[layer], nodes == 1 ? 1 : r, r, product, scratch + j * r);
    }
  }
  return scratch[0];
}

inline std::size_t recurrent_scratch(const RecurrentShape& shape) {
  return (shape.layers + 2) * shape.channels + std::max(shape.inputs, shape.channels);
}

template <class Ring, class Weight>
[[gnu::always_inline]] inline typename Ring::Element recurrent_output(
    const Ring& ring, const RecurrentShape& shape, const RecurrentWeights<Weight>& weights,
    const typename Ring::Element* x, typename Ring::Element* scratch) {
  const std::size_t R = shape.channels;
  auto* carried = scratch + shape.layers * R;
  auto* fed = carried + R;
  auto* below = fed + R;
  for (std::size_t l = 0; l < shape.layers; ++l) {
    for (std::size_t c = 0; c < R; ++c) {
      scratch[l * R + c] = ring.zero() + weights.layers[l].initial[c];
    }
  }
  for (std::size_t t = 0; t < shape.positions; ++t) {
    std::copy(x + t * shape.inputs, x + (t + 1) * shape.inputs, below);
    for (std::size_t l = 0; l < shape.layers; ++l) {
      const auto& layer = weights.layers[l];
      apply(ring, layer.hidden, R, R, scratch + l * R, carried);
      apply(ring, layer.input, R, l == 0 ? shape.inputs : R, below, fed);
      for (std::size_t c = 0; c < R; ++c) {
        scratch[l * R + c] = ring.multiply(carried[c], fed[c]);
        below[c] = scratch[l * R + c];
      }
    }
  }
  return ring.dot(weights.output.data(), 1, scratch + (shape.layers - 1) * R, R);
}

}  // namespace fathom::exact
