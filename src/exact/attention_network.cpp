#include "exact/attention_network.h"

namespace fathom::exact {

AttentionWeights<PrimeField::Element> random_attention_weights(const AttentionShape& shape,
                                                               FieldSampler& sampler) {
  AttentionWeights<PrimeField::Element> weights(shape.layers);
  const std::size_t size = shape.width * shape.width;
  for (auto& layer : weights) {
    layer.query = sampler.vector(size);
    layer.key = sampler.vector(size);
    layer.value = sampler.vector(size);
    layer.output = sampler.vector(size);
  }
  return weights;
}

AttentionWeights<double> balanced_weights(const AttentionWeights<PrimeField::Element>& weights,
                                          const PrimeField& field) {
  AttentionWeights<double> balanced;
  for (const auto& layer : weights) {
    balanced.push_back({balanced_values(layer.query, field), balanced_values(layer.key, field),
                        balanced_values(layer.value, field), balanced_values(layer.output, field)});
  }
  return balanced;
}

}  // namespace fathom::exact
