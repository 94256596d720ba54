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

constexpr std::int64_t kLongestPattern = 1 << 15;  // its table has a bit for every pair

void validate_pattern(const ModelSpec& spec) {
  const bool table =
      spec.has_pattern() || spec.keys == KeySource::projected || spec.keys == KeySource::sorted;
  require(
      !table || spec.context <= kLongestPattern,
      fmt::format("patterns, projected and sorted keys serve contexts up to {}", kLongestPattern));
  require(
      (spec.global_tokens == 0 && spec.random_blocks == 0) || spec.window > 0,
      "global_tokens and random_blocks need a window of at least 1, so that a token sees itself");
  require(spec.block_size == 0 || spec.random_blocks > 0 || spec.own_block ||
              spec.keys == KeySource::sorted,
          "block_size is that of random_blocks, own_block or sorted keys; set one of them too");
}

void validate_features(const ModelSpec& spec) {
  const bool random = spec.attention == engine::AttentionKind::performer;
  require(random || spec.features == 0, "features are those of attention = \"performer\"");
  require(!random || spec.features > 0,
          "attention = \"performer\" needs features, the random features of a head, such as 64");
  require(!random || (spec.window == 0 && !spec.has_pattern() && spec.keys != KeySource::projected),
          "attention = \"performer\" sums over all keys: no window, pattern or projected keys");
}

void validate_keys(const ModelSpec& spec) {
  const bool projected = spec.keys == KeySource::projected;
  require(projected || spec.projected_length == 0,
          "projected_length is that of keys = \"projected\"");
  require(!projected || (spec.projected_length >= 1 && spec.projected_length <= spec.context),
          fmt::format("keys = \"projected\" needs a projected_length from 1 to the context, {}",
                      spec.context));
  require(!projected || spec.mask == engine::MaskKind::bidirectional,
          "keys = \"projected\" mix all positions: set mask = \"bidirectional\"");
  require(!projected || (spec.window == 0 && !spec.has_pattern()),
          "keys = \"projected\" have no positions: no window or pattern");
  const bool sorted = spec.keys == KeySource::sorted;
  require(!sorted || (spec.mask == engine::MaskKind::bidirectional && spec.window == 0 &&
                      !spec.has_pattern()),
          "keys = \"sorted\" are those of other blocks: set mask = \"bidirectional\", no pattern");
  require(!sorted || spec.attention != engine::AttentionKind::performer,
          "keys = \"sorted\" are seen block by block: not with attention = \"performer\"");
  require(!sorted || spec.context % spec.resolved_block_size() == 0,
          fmt::format("keys = \"sorted\" need a block_size that divides the context, {}",
                      spec.context));
  require(spec.positions != Positions::rotary || spec.keys == KeySource::tokens ||
              spec.keys == KeySource::smeared,
          fmt::format("keys = \"{}\" are not those of a token: no rotary positions",
                      name_of(spec.keys)));
}

void validate_slice(const ModelSpec& spec) {
  if (spec.slice == 0) return;
  require(spec.slice % 2 == 0 && spec.slice <= spec.width && 2 * spec.width % spec.slice == 0,
          fmt::format("slice = {} must be even and half of it divide width = {}", spec.slice,
                      spec.width));
  require(spec.norm == NormPlace::pre && spec.residual, "slice needs norm = \"pre\" and residuals");
  require(spec.parametrisation == Parametrisation::standard,
          "slice goes with the standard parametrisation");
}

// The limits of the keys heads and ffn.
constexpr std::int64_t kMostHeads = 4096, kMostFfn = 1 << 20;

void validate_layers(const ModelSpec& spec) {
  const std::string order = spec.sublayers();
  const auto check = [&](const char* key, const std::vector<std::int64_t>& list, char sublayer,
                         std::int64_t unit, std::int64_t most) {
    if (list.empty()) return;
    const auto count = std::count(order.begin(), order.end(), sublayer);
    require(std::ssize(list) == count,
            fmt::format("{} has {} numbers for {} sublayers", key, list.size(), count));
    for (const std::int64_t each : list) {
      require(each >= 1 && each <= most && each % unit == 0,
              fmt::format("{}: {} must be a multiple of {} up to {}", key, each, unit, most));
    }
  };
  check("layer_heads", spec.layer_heads, 's', spec.heads / spec.resolved_key_heads(), kMostHeads);
  check("layer_ffn", spec.layer_ffn, 'f', 1, kMostFfn);
  require(spec.layer_heads.empty() || spec.keys == KeySource::tokens,
          "layer_heads go with keys = \"tokens\"");
}

}  // namespace

std::string sublayer_name(std::size_t index, bool attention) {
  return fmt::format("sub.{}.{}", index, attention ? "attention" : "ffn");
}

std::string ModelSpec::sublayers() const {
  if (!order.empty()) return order;
  std::string all;
  for (std::int64_t layer = 0; layer < layers; ++layer) all += feed_forward ? "sf" : "s";
  return all;
}

void validate(const ModelSpec& spec) {
  KeyChecker limits("model");
  ModelSpec::visit_keys(spec, limits);
  require(spec.head_size != 0 || spec.layer_width() % spec.heads == 0,
          fmt::format("heads = {} must divide {} = {} (or give head_size)", spec.heads,
                      spec.slice ? "slice" : "width", spec.layer_width()));
  require(spec.heads % spec.resolved_key_heads() == 0,
          fmt::format("key_heads = {} must divide heads = {}", spec.key_heads, spec.heads));
  require(spec.positions != Positions::rotary || spec.resolved_head_size() % 2 == 0,
          "rotary positions need an even head size");
  // In single precision, as it is used: 1 - 1e-9 would drop everything.
  require(spec.dropout >= 0 && static_cast<float>(spec.dropout) < 1, "dropout must lie in [0, 1)");
  require_positive("norm_epsilon", spec.norm_epsilon);
  require_positive("init_std", spec.init_std);
  require_positive("rotary_base", spec.rotary_base);
  require(std::all_of(spec.order.begin(), spec.order.end(),
                      [](char c) { return c == 's' || c == 'f'; }),
          "order may hold only s (attention) and f (feed-forward)");
  const auto attentions = std::count(spec.order.begin(), spec.order.end(), 's');
  require(spec.order.empty() || attentions == spec.layers,
          fmt::format("order has {} times s, layers says {}", attentions, spec.layers));
  validate_pattern(spec);
  validate_features(spec);
  validate_keys(spec);
  validate_slice(spec);
  validate_layers(spec);
  require(spec.depth_scheme == DepthScheme::none || (spec.norm == NormPlace::post && spec.residual),
          "depth schemes admin and deepnorm are for post-norm with residuals");
  require(
      spec.depth_scheme == DepthScheme::none || spec.parametrisation == Parametrisation::standard,
      "depth schemes admin and deepnorm go with the standard parametrisation");
}

}  // namespace fathom::model
