#include "shape/memory.h"

#include "core/counts.h"
#include "shape/parameters.h"

namespace fathom {

double activation_bytes_per_token_layer(const Shape& shape) {
  const double D = as_double(shape.width);
  const double q = as_double(shape.attention_width());
  const double kv = as_double(shape.kv_width());
  const double F = as_double(shape.ffn);
  const double H = as_double(shape.heads);
  const double attention = 2 * D + 2 * D + 2 * (q + 2 * kv) + 2 * q + 4 * H;
  const double feed_forward = 2 * D + 2 * D + (shape.gated() ? 6 : 4) * F;
  return attention + feed_forward;
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
  return 2 * as_double(shape.layers) * as_double(shape.kv_width()) * bytes_per_element;
}

}  // namespace fathom
