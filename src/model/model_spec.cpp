#include "model/model_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/spec_keys.h"

namespace fathom::model {
namespace {

void require(bool rule, const std::string& message) {
  if (!rule) throw ConfigError("model: " + message);
}

void require_positive(const char* key, double value) {
  require(std::isfinite(value) && value > 0, fmt::format("{} must be greater than zero", key));
}

}  // namespace

std::string ModelSpec::sublayers() const {
  if (!order.empty()) return order;
  std::string all;
  for (std::int64_t layer = 0; layer < layers; ++layer) all += feed_forward ? "sf" : "s";
  return all;
}

void validate(const ModelSpec& spec) {
  KeyChecker limits("model");
  ModelSpec::visit_keys(spec, limits);
  require(
      spec.head_size != 0 || spec.width % spec.heads == 0,
      fmt::format("heads = {} must divide width = {} (or give head_size)", spec.heads, spec.width));
  require(spec.heads % spec.resolved_key_heads() == 0,
          fmt::format("key_heads = {} must divide heads = {}", spec.key_heads, spec.heads));
  require(spec.positions != Positions::rotary || spec.resolved_head_size() % 2 == 0,
          "rotary positions need an even head size");
  require(spec.dropout >= 0 && spec.dropout < 1, "dropout must lie in [0, 1)");
  require_positive("norm_epsilon", spec.norm_epsilon);
  require_positive("init_std", spec.init_std);
  require_positive("rotary_base", spec.rotary_base);
  require(std::all_of(spec.order.begin(), spec.order.end(),
                      [](char c) { return c == 's' || c == 'f'; }),
          "order may hold only s (attention) and f (feed-forward)");
  const auto attentions = std::count(spec.order.begin(), spec.order.end(), 's');
  require(spec.order.empty() || attentions == spec.layers,
          fmt::format("order has {} times s, layers says {}", attentions, spec.layers));
  require(spec.depth_scheme == DepthScheme::none || (spec.norm == NormPlace::post && spec.residual),
          "depth schemes admin and deepnorm are for post-norm with residuals");
  require(
      spec.depth_scheme == DepthScheme::none || spec.parametrisation == Parametrisation::standard,
      "depth schemes admin and deepnorm go with the standard parametrisation");
}

}  // namespace fathom::model
