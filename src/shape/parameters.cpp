#include "shape/parameters.h"

#include <cmath>

#include "core/counts.h"

namespace fathom {
namespace {

/// Parameters of one norm over `size` elements.
std::int64_t norm_parameters(Norm norm, std::int64_t size) {
  switch (norm) {
    case Norm::nonparametric:
      return 0;
    case Norm::layer:
      return 2 * size;
    case Norm::layer_no_bias:
    case Norm::rms:
      return size;
  }
  return 0;
}

std::int64_t qk_norm_parameters(const Shape& shape) {
  switch (shape.conventions.qk_norm) {
    case QkNorm::none:
      return 0;
    case QkNorm::per_head:
      return 2 * shape.head_size;
    case QkNorm::full:
      return shape.attention_width() + shape.kv_width();
  }
  return 0;
}

std::int64_t bias_parameters_per_layer(const Shape& shape) {
  const Conventions& c = shape.conventions;
  std::int64_t count = 0;
  if (c.qkv_bias) count += shape.attention_width() + 2 * shape.kv_width();
  if (c.out_bias) count += shape.width;
  if (c.ffn_bias) count += (shape.ffn_matrices - 1) * shape.ffn + shape.width;
  return count;
}

}  // namespace

ParameterCount count_parameters(const Shape& shape) {
  const Conventions& c = shape.conventions;
  const std::int64_t L = shape.layers;
  const std::int64_t D = shape.width;

  ParameterCount count;
  count.embedding = shape.vocab * D;
  if (c.positions == Positions::learned) count.positions = (shape.context + c.position_offset) * D;
  count.attention_matrices = L * (2 * D * shape.attention_width() + 2 * D * shape.kv_width());
  count.ffn_matrices = L * shape.ffn_matrices * D * shape.ffn;
  count.head = shape.tied ? 0 : shape.vocab * D;
  const std::int64_t norm = norm_parameters(c.norm, D);
  count.norms = L * (c.norms_per_layer * norm + qk_norm_parameters(shape)) +
                (c.final_norm ? norm : 0) + (c.embedding_norm ? norm : 0);
  count.biases = L * bias_parameters_per_layer(shape) + (c.head_bias ? shape.vocab : 0);
  count.paper_12Ld2 = paper_parameters(L, D);
  return count;
}

double block_coefficient(const ShapeRequest& request) {
  const double attention = 2 + 2.0 / as_double(request.kv_group);
  const double sum = attention + (request.gated ? 3 : 2) * feed_forward_ratio(request);
  // 2 + 2 + 3 * 8/3 is 12 up to rounding; laws with a closed form want it exact.
  const double paper = as_double(kPaperBlockCoefficient);
  return std::fabs(sum - paper) < 1e-9 ? paper : sum;
}

}  // namespace fathom
