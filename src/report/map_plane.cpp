#include "report/map_plane.h"

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "planner/shape_report.h"
#include "report/map_budgets.h"
#include "shape/timing.h"

namespace fathom::report {
namespace {

using Json = nlohmann::ordered_json;

double train_seconds_per_token(const Shape& shape, const Hardware& device, std::int64_t tokens) {
  return model_step_time(shape, device, tokens).total() / as_double(tokens);
}

double decode_seconds(const Shape& shape, const Hardware& device) {
  return model_decode_time(shape, device, as_double(shape.context) / 2).total();
}

Json model_json(const CatalogueEntry& entry, const std::vector<Hardware>& hardware,
                std::int64_t step_tokens) {
  const planner::ShapeReport report = planner::report_shape(
      {.name = entry.name, .shape = entry.shape, .published = &entry, .note = {}}, hardware.front(),
      step_tokens);
  Json json{
      {"name", entry.name},
      {"organisation", entry.organisation},
      {"year", entry.year > 0 ? Json(entry.year) : Json(nullptr)},
      {"sweep", entry.sweep_member()},
      {"layers", entry.shape.layers},
      {"width", entry.shape.width},
      {"heads", entry.shape.heads},
      {"ffn", entry.shape.ffn},
      {"total", report.parameters.total()},
      {"non_embedding", report.parameters.non_embedding()},
      {"tokens", entry.tokens > 0 ? whole_number(entry.tokens) : Json(nullptr)},
      {"laws_layers", map_number(report.consensus->optimum.layers)},
      {"band", {map_number(report.consensus->band.low), map_number(report.consensus->band.high)}},
      {"penalty", map_number(report.consensus->penalty)},
      {"evidence", to_string(report.consensus->evidence)}};
  for (const Hardware& device : hardware) {
    json["train_seconds_per_token"].push_back(
        map_number(train_seconds_per_token(entry.shape, device, step_tokens)));
    json["decode_seconds"].push_back(map_number(decode_seconds(entry.shape, device)));
  }
  return json;
}

/// Narrow tiles may have fewer heads than a group asks for; there every head has its own keys.
Shape complete_tile(ShapeRequest request) {
  try {
    return complete(request);
  } catch (const ConfigError&) {
    request.kv_group = 1;
    return complete(request);
  }
}

}  // namespace

Json published_models(const std::vector<Hardware>& hardware, std::int64_t step_tokens) {
  Json models = Json::array();
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.dense_decoder()) models.push_back(model_json(entry, hardware, step_tokens));
  }
  return models;
}

Json time_field(const planner::PlanRequest& request, const std::vector<Hardware>& hardware) {
  const std::vector<std::int64_t> depths{2,  3,  4,  5,  6,  8,  10, 12,  14,  16,  20,  24,  28,
                                         32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256};
  const std::vector<std::int64_t> widths{128,  192,  256,   320,   384,   512,   640,   768,
                                         1024, 1280, 1536,  2048,  2560,  3072,  4096,  5120,
                                         6144, 8192, 10240, 12288, 16384, 20480, 24576, 32768};
  Json field{{"layers", depths}, {"width", widths}};
  for (const Hardware& device : hardware) {
    Json train = Json::array(), decode = Json::array();
    for (const std::int64_t layers : depths) {
      for (const std::int64_t width : widths) {
        ShapeRequest own = request.base;
        own.layers = layers;
        own.width = width;
        own.kv_heads = 0;
        const Shape shape = complete_tile(own);
        train.push_back(map_number(train_seconds_per_token(shape, device, request.step_tokens)));
        decode.push_back(map_number(decode_seconds(shape, device)));
      }
    }
    field["train_seconds_per_token"].push_back(train);
    field["decode_seconds"].push_back(decode);
  }
  return field;
}

}  // namespace fathom::report
