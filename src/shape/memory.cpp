#include "shape/memory.h"

#include "core/counts.h"
#include "shape/parameters.h"

namespace fathom {

double activation_bytes_per_token_layer(const Shape& shape) {
  const double D = as_double(shape.width);
  const double q = as_double(shape.attention_width());
  const double H = as_double(shape.heads);
  const double out = as_double(shape.value_width());
  const double keys_and_values =
      shape.latent_attention()
          ? q + out + as_double(shape.latent.kv_rank + shape.latent.rope_size + shape.latent.q_rank)
          : 2 * as_double(shape.kv_width());
  const double attention = 2 * D + 2 * D + 2 * (q + keys_and_values) + 2 * out + 4 * H;
  const Experts& experts = shape.experts;
  const double sparse = as_double(shape.expert_layers()) / as_double(shape.layers);
  const double F = (1 - sparse) * as_double(shape.ffn) +
                   sparse * as_double(experts.active * experts.ffn + experts.shared_ffn);
  const double router = sparse * 2 * as_double(experts.routed);
  return attention + 2 * D + 2 * D + (shape.gated() ? 6 : 4) * F + router;
}

TrainingMemory count_training_memory(const Shape& shape, double tokens) {
  const double parameters = as_double(count_parameters(shape).total());
  const double L = as_double(shape.layers);
  const double D = as_double(shape.width);
  const double layer = activation_bytes_per_token_layer(shape);
  const double ends = 2 * 2 * D;  // embedding output and final norm output

  TrainingMemory memory;
  memory.weights = kWeightBytes * parameters;
  memory.gradients = kGradientBytes * parameters;
  memory.optimizer = kOptimizerBytes * parameters;
  memory.activations = tokens * (L * layer + ends);
  memory.activations_recompute = tokens * (L * 2 * D + layer + ends);
  memory.logits = tokens * 4 * as_double(shape.vocab);
  return memory;
}

double kv_bytes_per_token(const Shape& shape, double bytes_per_element) {
  const std::int64_t elements = shape.latent_attention()
                                    ? shape.latent.kv_rank + shape.latent.rope_size
                                    : 2 * shape.kv_width();
  return as_double(shape.layers) * as_double(elements) * bytes_per_element;
}

}  // namespace fathom
