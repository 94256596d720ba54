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

std::int64_t attention_parameters(const Shape& shape) {
  const std::int64_t D = shape.width;
  const std::int64_t queries = shape.attention_width();
  if (!shape.latent_attention()) return 2 * D * queries + 2 * D * shape.kv_width();
  const LatentAttention& latent = shape.latent;
  const std::int64_t query = latent.q_rank > 0 ? (D + queries) * latent.q_rank : D * queries;
  const std::int64_t key_size = shape.head_size - latent.rope_size;
  const std::int64_t down = D * (latent.kv_rank + latent.rope_size);
  const std::int64_t up = latent.kv_rank * shape.heads * (key_size + latent.value_size);
  return query + down + up + shape.value_width() * D;
}

std::int64_t attention_biases(const Shape& shape) {
  const Conventions& c = shape.conventions;
  std::int64_t count = c.attention_sinks ? shape.heads : 0;
  if (c.qkv_bias) count += shape.attention_width() + 2 * shape.kv_width();
  if (c.out_bias) count += shape.width;
  return count;
}

std::int64_t latent_norm_parameters(const Shape& shape) {
  return shape.latent_attention() ? shape.latent.kv_rank + shape.latent.q_rank : 0;
}

/// Biases of one feed-forward of width F.
std::int64_t feed_forward_biases(const Shape& shape, std::int64_t F) {
  return (shape.ffn_matrices - 1) * F + shape.width;
}

void add_feed_forwards(const Shape& shape, ParameterCount& count) {
  const Experts& experts = shape.experts;
  const std::int64_t D = shape.width;
  const std::int64_t sparse = shape.expert_layers();
  const std::int64_t dense = shape.layers - sparse;
  const std::int64_t routed = shape.ffn_matrices * D * experts.ffn;
  const std::int64_t asleep = experts.routed - experts.active;
  count.ffn_matrices =
      dense * shape.ffn_matrices * D * shape.ffn +
      sparse * (experts.routed * routed + shape.ffn_matrices * D * experts.shared_ffn);
  count.inactive_matrices = sparse * asleep * routed;
  count.router = sparse * (D * experts.routed + (experts.shared_gate ? D : 0));
  if (shape.conventions.ffn_bias) count.biases += dense * feed_forward_biases(shape, shape.ffn);
  if (experts.router_bias) count.biases += sparse * experts.routed;
  if (experts.expert_bias) {
    count.biases += sparse * experts.routed * feed_forward_biases(shape, experts.ffn);
    count.inactive_biases = sparse * asleep * feed_forward_biases(shape, experts.ffn);
  }
}

}  // namespace

ParameterCount count_parameters(const Shape& shape) {
  const Conventions& c = shape.conventions;
  const std::int64_t L = shape.layers;
  const std::int64_t D = shape.width;

  ParameterCount count;
  count.embedding = shape.vocab * D;
  if (c.positions == Positions::learned) count.positions = (shape.context + c.position_offset) * D;
  count.attention_matrices = L * attention_parameters(shape);
  count.head = shape.tied ? 0 : shape.vocab * D;
  const std::int64_t norm = norm_parameters(c.norm, D);
  count.norms =
      L * (c.norms_per_layer * norm + qk_norm_parameters(shape) + latent_norm_parameters(shape)) +
      (c.final_norm ? norm : 0) + (c.embedding_norm ? norm : 0);
  count.biases = L * attention_biases(shape) + (c.head_bias ? shape.vocab : 0);
  add_feed_forwards(shape, count);
  count.paper_12Ld2 = paper_parameters(L, D);
  return count;
}

double block_coefficient(const ShapeRequest& request) {
  const double attention = 2 + 2.0 / as_double(request.kv_group);
  const double sum = attention + (request.gated ? 3 : 2) * feed_forward_ratio(request);
  // 2 + 2 + 3 * 8/3 is 12 up to rounding; laws with a closed form need it exact.
  const double paper = as_double(kPaperBlockCoefficient);
  return std::fabs(sum - paper) < 1e-9 ? paper : sum;
}

}  // namespace fathom
