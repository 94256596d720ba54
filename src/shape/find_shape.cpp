#include "shape/find_shape.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "core/units.h"
#include "shape/hf_config.h"

namespace fathom {
namespace {

bool is_config_path(const std::string& text) {
  return text.ends_with(".json") || std::filesystem::exists(text);
}

NamedShape shape_from_numbers(const std::string& what, ShapeRequest request) {
  const ShapeRequest size = parse_depth_by_width(what);
  request.layers = size.layers;
  request.width = size.width;
  for (const std::int64_t value :
       {request.heads, request.kv_heads, request.head_size, request.ffn}) {
    if (value < 0) {
      throw ConfigError("heads, kv heads, head size and ffn must be greater than zero");
    }
  }
  const Shape shape = complete(request);
  return {depth_by_width(shape), shape, nullptr, ""};
}

NamedShape published_shape(const std::string& name) {
  const PublishedMatch match = match_published(name);
  const CatalogueEntry& entry = *match.entry;
  if (!entry.countable()) {
    throw ConfigError(
        fmt::format("{} is an {}; Fathom counts decoders and encoders, dense or "
                    "with experts",
                    entry.name, entry.kind));
  }
  return {entry.name, entry.shape, &entry,
          match.exact ? "" : fmt::format("'{}' taken as {}", name, entry.name)};
}

/// Changes what was asked for and notes it in the name.
void change(NamedShape& found, const ShapeRequest& asked) {
  Shape& shape = found.shape;
  const auto set = [&](std::int64_t value, std::int64_t& place, const char* what) {
    if (value == 0) return;
    if (value < 0) throw ConfigError(fmt::format("{} must be greater than zero", what));
    place = value;
    found.name += fmt::format(", {} {}", what, format_whole(value));
  };
  set(asked.vocab, shape.vocab, "vocabulary");
  if (asked.context > 0) shape.context_known = true;
  set(asked.context, shape.context, "context");
  set(asked.ffn, shape.ffn, "ffn");
  const bool square = shape.attention_width() == shape.width;
  const bool grouped = shape.kv_heads != shape.heads;
  set(asked.heads, shape.heads, "heads");
  set(asked.head_size, shape.head_size, "head size");
  if (asked.heads > 0 && asked.head_size == 0 && square) {
    if (shape.width % shape.heads != 0) {
      throw ConfigError(fmt::format("width {} is not divisible by {} heads; give --head-size too",
                                    shape.width, shape.heads));
    }
    shape.head_size = shape.width / shape.heads;
  }
  if (asked.heads > 0 && !grouped) shape.kv_heads = shape.heads;
  set(asked.kv_heads, shape.kv_heads, "kv heads");
  if (asked.gated && !shape.gated()) {
    shape.ffn_matrices = 3;
    found.name += ", gated";
  }
  if (!asked.tied && shape.tied) {
    shape.tied = false;
    found.name += ", untied";
  }
  if (!asked.conventions.empty()) {
    shape.conventions = find_conventions(asked.conventions);
    found.name += ", conventions " + asked.conventions;
  }
}

}  // namespace

std::string shape_command(const Shape& shape) {
  std::string command =
      fmt::format("fathom shape {}x{} --heads {}", shape.layers, shape.width, shape.heads);
  const auto add = [&](bool differs, const char* name, std::int64_t value) {
    if (differs) command += fmt::format(" {} {}", name, value);
  };
  add(shape.kv_heads != shape.heads, "--kv-heads", shape.kv_heads);
  add(shape.attention_width() != shape.width, "--head-size", shape.head_size);
  add(true, "--ffn", shape.ffn);
  if (shape.gated()) command += " --gated";
  add(shape.vocab != kDefaultVocab, "--vocab", shape.vocab);
  add(shape.context != kDefaultContext, "--context", shape.context);
  if (!shape.tied) command += " --untied";
  return command;
}

NamedShape find_shape(const std::string& what, const ShapeRequest& asked) {
  if (looks_like_depth_by_width(what)) return shape_from_numbers(what, asked);
  NamedShape found;
  if (is_config_path(what)) {
    const HfModel model = read_hf_config(what);
    found = {fmt::format("{} ({})", what, model.model_type), model.shape, nullptr, ""};
  } else {
    found = published_shape(what);
  }
  change(found, asked);
  validate(found.shape);
  return found;
}

}  // namespace fathom
