#include "exact/arithmetic_circuit.h"

#include "core/counts.h"

namespace fathom::exact {

std::size_t ConvShape::rounds() const {
  std::size_t rounds = 0;
  for (std::size_t nodes = positions; nodes > 1; nodes /= 2) ++rounds;
  return rounds;
}

ConvWeights<PrimeField::Element> random_conv_weights(const ConvShape& shape,
                                                     FieldSampler& sampler) {
  const std::size_t r = shape.channels;
  ConvWeights<PrimeField::Element> weights{sampler.vector(r * shape.inputs)};
  for (std::size_t layer = 1; layer < shape.rounds(); ++layer) {
    weights.push_back(sampler.vector(r * r));
  }
  weights.push_back(sampler.vector(r));
  return weights;
}

RecurrentWeights<PrimeField::Element> random_recurrent_weights(const RecurrentShape& shape,
                                                               FieldSampler& sampler) {
  const std::size_t R = shape.channels;
  RecurrentWeights<PrimeField::Element> weights;
  for (std::size_t l = 0; l < shape.layers; ++l) {
    weights.layers.push_back({sampler.vector(R * R),
                              sampler.vector(R * (l == 0 ? shape.inputs : R)), sampler.vector(R)});
  }
  weights.output = sampler.vector(R);
  return weights;
}

ConvWeights<double> balanced_weights(const ConvWeights<PrimeField::Element>& weights,
                                     const PrimeField& field) {
  ConvWeights<double> balanced;
  for (const auto& layer : weights) balanced.push_back(balanced_values(layer, field));
  return balanced;
}

RecurrentWeights<double> balanced_weights(const RecurrentWeights<PrimeField::Element>& weights,
                                          const PrimeField& field) {
  RecurrentWeights<double> balanced;
  for (const auto& layer : weights.layers) {
    balanced.layers.push_back({balanced_values(layer.hidden, field),
                               balanced_values(layer.input, field),
                               balanced_values(layer.initial, field)});
  }
  balanced.output = balanced_values(weights.output, field);
  return balanced;
}

std::vector<std::size_t> pooling_order(const ConvShape& shape) {
  std::vector<std::size_t> order;
  for (std::size_t j = 0; j < shape.positions; ++j) {
    const bool mirrored = shape.pooling == Pooling::mirror;
    order.push_back(!mirrored ? j : (j % 2 == 0 ? j / 2 : shape.positions - 1 - j / 2));
  }
  return order;
}

double recurrent_degree(const RecurrentShape& shape, std::size_t position) {
  // Paths from x^t to the top state after the last position: l - 1 upward steps spread over the
  // N - t remaining moments.
  const double later = as_double(shape.positions - 1 - position);
  double count = 1;
  for (std::size_t i = 1; i < shape.layers; ++i) {
    count *= (later + as_double(i)) / as_double(i);
  }
  return count;
}

}  // namespace fathom::exact
