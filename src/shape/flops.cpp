#include "shape/flops.h"

#include "core/counts.h"
#include "shape/parameters.h"

namespace fathom {
namespace {

/// What one token is multiplied by: everything that FLOPs are counted from.
struct TokenWork {
  double block_weights = 0;
  double head_weights = 0;        // V D
  double attention_channels = 0;  // L H (K + U) / 2, U the size of a value: usually L H K
  double positions_seen = 0;

  double blocks() const { return 2 * block_weights; }
  double head() const { return 2 * head_weights; }
  /// Scores and weighted sum.
  double attention() const { return 4 * attention_channels * positions_seen; }
  double forward() const { return blocks() + head() + attention(); }
};

constexpr double kTrainOverForward = 3;  // the backward pass costs two forward passes

TokenWork work_of(const Shape& shape, double positions_seen) {
  return {.block_weights = as_double(count_parameters(shape).active_matrices()),
          .head_weights = as_double(shape.vocab) * as_double(shape.width),
          .attention_channels = as_double(shape.layers) *
                                as_double(shape.attention_width() + shape.value_width()) / 2,
          .positions_seen = positions_seen};
}

}  // namespace

FlopCount count_flops(const Shape& shape, AttentionSpan span) {
  const TokenWork work = work_of(shape, mean_positions_seen(as_double(shape.context), span));
  FlopCount count;
  count.forward_per_token = work.forward();
  count.train_per_token = kTrainOverForward * count.forward_per_token;
  count.train_recompute_per_token = count.train_per_token + work.blocks() + work.attention();
  count.attention_share = work.attention() / count.forward_per_token;
  count.six_n_per_token = 6.0 * as_double(count_parameters(shape).active_non_embedding());
  return count;
}

double train_flops_per_token(double layers, double width, double block_coefficient, double vocab,
                             double context) {
  const TokenWork work{.block_weights = block_coefficient * layers * width * width,
                       .head_weights = vocab * width,
                       .attention_channels = layers * width,
                       .positions_seen = mean_positions_seen(context)};
  return kTrainOverForward * work.forward();
}

double decode_flops(const Shape& shape, double cached) {
  return work_of(shape, cached + 1).forward();
}

}  // namespace fathom
