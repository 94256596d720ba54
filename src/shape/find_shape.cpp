#include "shape/find_shape.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "shape/hf_config.h"

namespace fathom {
namespace {

bool is_config_path(const std::string& text) {
  return text.ends_with(".json") || std::filesystem::exists(text);
}

bool says_more_than_context(const ShapeRequest& asked) {
  return asked.heads || asked.kv_heads || asked.head_size || asked.ffn || asked.gated ||
         !asked.tied || asked.vocab || !asked.conventions.empty();
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
  return {depth_by_width(shape), shape, nullptr};
}

NamedShape published_shape(const std::string& name) {
  const CatalogueEntry& entry = find_published(name);
  if (entry.kind != "decoder" && entry.kind != "encoder") {
    throw ConfigError(
        fmt::format("{} is a {}; Fathom counts dense stacks only", entry.name, entry.kind));
  }
  return {entry.name, entry.shape, &entry};
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
  if (says_more_than_context(asked)) {
    throw ConfigError("--heads, --ffn, --vocab and their like go with LAYERSxWIDTH only");
  }
  NamedShape found;
  if (is_config_path(what)) {
    const HfModel model = read_hf_config(what);
    found = {fmt::format("{} ({})", what, model.model_type), model.shape, nullptr};
  } else {
    found = published_shape(what);
  }
  if (asked.context > 0) found.shape.context = asked.context;
  validate(found.shape);
  return found;
}

}  // namespace fathom
