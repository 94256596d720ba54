#include "shape/flops.h"

#include "shape/parameters.h"

namespace fathom {
namespace {

/// Scores and weighted sum of all layers for one token that sees `seen` positions.
double attention_flops(const Shape& shape, double seen) {
  return 4.0 * static_cast<double>(shape.layers) * static_cast<double>(shape.attention_width()) *
         seen;
}

}  // namespace

FlopCount count_flops(const Shape& shape, AttentionSpan span) {
  const ParameterCount parameters = count_parameters(shape);
  const double T = static_cast<double>(shape.context);
  const double blocks = 2.0 * static_cast<double>(parameters.block_matrices());
  const double head = 2.0 * static_cast<double>(shape.vocab) * static_cast<double>(shape.width);
  const double attention = attention_flops(shape, span == AttentionSpan::causal ? (T + 1) / 2 : T);

  FlopCount count;
  count.forward_per_token = blocks + head + attention;
  count.train_per_token = 3 * count.forward_per_token;
  count.train_recompute_per_token = count.train_per_token + blocks + attention;
  count.attention_share = attention / count.forward_per_token;
  count.six_n_per_token = 6.0 * static_cast<double>(parameters.non_embedding());
  return count;
}

double train_flops_per_token(double layers, double width, double block_coefficient, double vocab,
                             double context) {
  const double blocks = 2 * block_coefficient * layers * width * width;
  const double head = 2 * vocab * width;
  const double attention = 4 * layers * width * (context + 1) / 2;
  return 3 * (blocks + head + attention);
}

double decode_flops(const Shape& shape, double cached) {
  const ParameterCount parameters = count_parameters(shape);
  return 2.0 * static_cast<double>(parameters.block_matrices()) +
         2.0 * static_cast<double>(shape.vocab) * static_cast<double>(shape.width) +
         attention_flops(shape, cached + 1);
}

}  // namespace fathom
