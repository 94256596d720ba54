#include "shape/shape.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "core/counts.h"
#include "core/error.h"
#include "core/text.h"
#include "core/toml_reader.h"
#include "core/units.h"

namespace fathom {

namespace embedded {
extern const std::string_view conventions_toml;
}

namespace {

/// The planner validates every shape it prices: a message is formatted only where it is thrown.
template <class... Values>
void require(bool holds, fmt::format_string<const Values&...> message, const Values&... values) {
  if (!holds) throw ConfigError(fmt::format(message, values...));
}

Conventions read_conventions(const std::string& name, TomlReader table) {
  Conventions c;
  c.name = name;
  c.assumed = name.starts_with("assumed");
  c.norm = table.word("norm", Norm::rms);
  c.norms_per_layer = table.integer("norms_per_layer", 2);
  c.final_norm = table.boolean("final_norm", true);
  c.embedding_norm = table.boolean("embedding_norm", false);
  c.qkv_bias = table.boolean("qkv_bias", false);
  c.out_bias = table.boolean("out_bias", false);
  c.ffn_bias = table.boolean("ffn_bias", false);
  c.head_bias = table.boolean("head_bias", false);
  c.qk_norm = table.word("qk_norm", QkNorm::none);
  c.positions = table.word("positions", Positions::rotary);
  c.position_offset = table.integer("position_offset", 0);
  c.attention_sinks = table.boolean("attention_sinks", false);
  table.finish();
  return c;
}

const std::map<std::string, Conventions>& all_conventions() {
  static const std::map<std::string, Conventions> table = [] {
    std::map<std::string, Conventions> entries;
    TomlReader file = TomlReader::from_text(embedded::conventions_toml, "conventions.toml");
    for (const std::string& name : file.keys()) {
      entries.emplace(name, read_conventions(name, file.table(name)));
    }
    return entries;
  }();
  return table;
}

/// "96x12288", "96X12288" or "96×12288" split into two runs of digits.
std::optional<std::pair<std::string, std::string>> split_depth_by_width(const std::string& text) {
  const std::size_t first = text.find_first_not_of("0123456789");
  if (first == 0 || first == std::string::npos) return std::nullopt;
  for (const std::string_view sign : {"x", "X", "×"}) {
    if (text.compare(first, sign.size(), sign) != 0) continue;
    const std::string width = text.substr(first + sign.size());
    if (width.empty() || width.find_first_not_of("0123456789") != std::string::npos) break;
    return std::pair{text.substr(0, first), width};
  }
  return std::nullopt;
}

}  // namespace

const Conventions& find_conventions(const std::string& name) {
  const auto& table = all_conventions();
  const auto found = table.find(name);
  if (found != table.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, conventions] : table) names.push_back(known);
  throw ConfigError(fmt::format("conventions '{}' are not known.{} Choose from: {}", name,
                                did_you_mean(name, names), join(names, ", ")));
}

std::int64_t usual_head_size(std::int64_t width) {
  std::int64_t size = full_head_size(as_double(width));
  while (size > 1 && width % size != 0) size /= 2;
  return size;
}

double feed_forward_ratio(const ShapeRequest& request) {
  if (request.ffn_ratio > 0) return request.ffn_ratio;
  return request.gated ? 8.0 / 3 : 4.0;
}

std::int64_t feed_forward_width(const ShapeRequest& request, std::int64_t divisor) {
  if (request.ffn > 0) return request.ffn;
  if (request.ffn_ratio == 0 && !request.gated && 4 * request.width % divisor == 0) {
    return 4 * request.width;
  }
  const std::int64_t unit = std::lcm(feed_forward_multiple(request.width), divisor);
  const double units = feed_forward_ratio(request) * as_double(request.width) / as_double(unit);
  return std::max<std::int64_t>(1, std::llround(units)) * unit;
}

Shape complete(const ShapeRequest& request) {
  Shape shape;
  shape.layers = request.layers;
  shape.width = request.width;
  shape.head_size = request.head_size;
  shape.heads = request.heads;
  if (shape.heads == 0) {
    if (shape.head_size == 0) shape.head_size = usual_head_size(shape.width);
    if (shape.width % shape.head_size != 0) {
      throw ConfigError(
          fmt::format("width {} is not divisible by the head size {}; give --heads too",
                      shape.width, shape.head_size));
    }
    shape.heads = shape.width / shape.head_size;
  } else if (shape.head_size == 0) {
    if (shape.width % shape.heads != 0) {
      throw ConfigError(
          fmt::format("width {} is not divisible by {} heads; change one or give --head-size",
                      shape.width, shape.heads));
    }
    shape.head_size = shape.width / shape.heads;
  }
  if (request.kv_heads == 0 && shape.heads % request.kv_group != 0) {
    throw ConfigError(
        fmt::format("{} heads are not divisible into groups of {}", shape.heads, request.kv_group));
  }
  shape.kv_heads = request.kv_heads > 0 ? request.kv_heads : shape.heads / request.kv_group;
  shape.ffn_matrices = request.gated ? 3 : 2;
  shape.ffn = feed_forward_width(request);
  shape.vocab = request.vocab > 0 ? request.vocab : kDefaultVocab;
  shape.context = request.context > 0 ? request.context : kDefaultContext;
  shape.tied = request.tied;
  shape.conventions = find_conventions(!request.conventions.empty() ? request.conventions
                                       : request.gated              ? "llama"
                                                                    : "gpt2");
  validate(shape);
  return shape;
}

void validate(const Shape& shape) {
  const auto in_range = [](std::int64_t value, std::int64_t most, const char* name) {
    if (value >= 1 && value <= most) return;
    throw ConfigError(fmt::format("{} {} must be 1 to {}", name, value, format_whole(most)));
  };
  in_range(shape.layers, 100'000, "layers");
  in_range(shape.width, 10'000'000, "width");
  in_range(shape.heads, 1'000'000, "heads");
  in_range(shape.kv_heads, 1'000'000, "kv heads");
  in_range(shape.head_size, 1'000'000, "head size");
  in_range(shape.ffn, 100'000'000, "ffn");
  in_range(shape.vocab, 100'000'000, "vocabulary");
  in_range(shape.context, 1'000'000'000, "context");
  require(shape.heads % shape.kv_heads == 0, "{} heads are not divisible by {} kv heads",
          shape.heads, shape.kv_heads);
  require(shape.ffn_matrices == 2 || shape.ffn_matrices == 3,
          "a feed-forward has 2 or 3 matrices, not {}", shape.ffn_matrices);
  const Experts& experts = shape.experts;
  if (shape.mixture()) {
    in_range(experts.routed, 1'000'000, "experts");
    in_range(experts.ffn, 100'000'000, "expert ffn");
    require(experts.active >= 1 && experts.active <= experts.routed, "{} active experts of {}",
            experts.active, experts.routed);
    require(experts.dense_layers >= 0 && experts.dense_layers < shape.layers,
            "{} dense layers of {} leave none with experts", experts.dense_layers, shape.layers);
  }
  const double D = as_double(shape.width);
  const double block = 4 * D * as_double(shape.attention_width()) + 3 * D * as_double(shape.ffn) +
                       3 * D * as_double(experts.routed) * as_double(experts.ffn);
  require(as_double(shape.layers) * block < 1e18, "this shape has more than 1e18 parameters");
}

bool looks_like_depth_by_width(const std::string& text) {
  return split_depth_by_width(text).has_value();
}

ShapeRequest parse_depth_by_width(const std::string& text) {
  const auto parts = split_depth_by_width(text);
  if (!parts) throw ConfigError(fmt::format("'{}' is not LAYERSxWIDTH, like 96x12288", text));
  ShapeRequest request;
  request.layers = parse_whole(parts->first, "layers");
  request.width = parse_whole(parts->second, "width");
  return request;
}

std::string depth_by_width(const Shape& shape) {
  return fmt::format("{}×{}", shape.layers, shape.width);
}

}  // namespace fathom
