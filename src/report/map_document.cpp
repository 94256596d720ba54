#include "report/map_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/units.h"
#include "fits/study_law.h"
#include "report/map_budgets.h"
#include "report/map_plane.h"
#include "report/versions.h"
#include "study/study_rows.h"

namespace fathom::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using planner::Plan;
using planner::PlanRequest;

/// All built-in profiles; the request's own first where it is a file.
std::vector<Hardware> profiles(const PlanRequest& request) {
  std::vector<Hardware> all;
  for (const std::string& name : hardware_names()) all.push_back(find_hardware(name));
  const Hardware asked = find_hardware(request.hardware);
  const bool known = std::any_of(all.begin(), all.end(),
                                 [&](const Hardware& each) { return each.name == asked.name; });
  if (!known) all.insert(all.begin(), asked);
  return all;
}

Json hardware_json(const std::vector<Hardware>& hardware) {
  Json list = Json::array();
  for (const Hardware& device : hardware) {
    list.push_back({{"name", device.name}, {"title", device.title}, {"source", device.source}});
  }
  return list;
}

Json law_json(const laws::LawInfo& info, double vote) {
  return {{"name", info.name},   {"title", info.title},   {"source", info.source},
          {"claim", info.claim}, {"fitted", info.fitted}, {"vote", map_number(vote)}};
}

/// A study's runs as dots.
Json run_points(const fs::path& directory) {
  Json points = Json::array();
  for (const study::RunRow& row : study::collect_rows(directory)) {
    if (!std::isfinite(row.final_loss) || row.layers < 1 || row.width < 1) continue;
    const Json loss{"loss", fmt::format("{:.4f}", row.final_loss)};
    const Json tokens{"tokens", format_count(as_double(row.tokens))};
    points.push_back({{"name", ""},
                      {"layers", row.layers},
                      {"width", row.width},
                      {"facts", Json::array({loss, tokens})}});
  }
  if (points.empty()) {
    throw DataError(
        fmt::format("{}: no finished run to lay over the map; see 'fathom study list {}'",
                    directory.string(), directory.string()));
  }
  return points;
}

/// Shapes from a table: columns layers and width, a name, and whatever else their cards should
/// show.
Json table_points(const fs::path& path) {
  const CsvTable table(read_text_file(path), path.string());
  const auto count = [&](std::size_t row, const char* column) {
    const double value = table.number(row, column);
    if (value >= 1 && value == std::floor(value)) return std::llround(value);
    throw DataError(fmt::format("{}: line {}: {} must be a whole number from 1 on", path.string(),
                                row + 2, column));
  };
  Json points = Json::array();
  for (std::size_t row = 0; row < table.size(); ++row) {
    Json facts = Json::array();
    for (const std::string& column : table.columns()) {
      if (column == "layers" || column == "width" || column == "name") continue;
      if (!table.cell(row, column).empty()) facts.push_back({column, table.cell(row, column)});
    }
    points.push_back({{"name", table.has_column("name") ? table.cell(row, "name") : ""},
                      {"layers", count(row, "layers")},
                      {"width", count(row, "width")},
                      {"facts", facts}});
  }
  if (points.empty()) throw DataError(path.string() + ": the table has no rows");
  return points;
}

struct Overlays {
  Json points = Json::array();
  std::vector<laws::LawPointer> laws;
};

Overlays read_overlays(const std::vector<fs::path>& paths) {
  Overlays overlays;
  for (const fs::path& path : paths) {
    const bool folder = fs::is_directory(path);
    const bool table = path.extension() == ".csv";
    if (folder ? fs::exists(path / fits::kLawFile) : !table) {
      overlays.laws.push_back(fits::load_study_law(path));
    }
    if (!folder && !table) continue;
    const fs::path name = folder ? fs::weakly_canonical(path).filename() : path.stem();
    overlays.points.push_back(
        {{"name", name.string()}, {"points", folder ? run_points(path) : table_points(path)}});
  }
  return overlays;
}

/// Which stop is the request's own.
Json start_json(const PlanRequest& request, const Plan& plan, const MapStops& stops) {
  const double ratio = tokens_per_parameter_of(request, plan.budget.parameters());
  const auto index = [](const std::vector<double>& values, double value) {
    return std::lower_bound(values.begin(), values.end(), value) - values.begin();
  };
  return {{"count", request.flops ? "flops" : "parameters"},
          {"budget", request.flops ? index(stops.flops, *request.flops)
                                   : index(stops.parameters, *request.parameters)},
          {"tokens", index(stops.tokens_per_parameter, ratio)},
          {"hardware", plan.hardware.name}};
}

std::string title_of(const PlanRequest& request) {
  return request.flops ? fmt::format("The map of shapes for {:g} FLOPs", *request.flops)
                       : fmt::format("The map of shapes for {} parameters",
                                     format_count(*request.parameters));
}

}  // namespace

Json make_map_document(const MapRequest& map) {
  const PlanRequest& request = map.plan;
  const Plan plan = planner::make_plan(request);
  const Overlays overlays = read_overlays(map.overlays);
  const std::vector<Hardware> hardware = profiles(request);
  const MapStops stops = make_stops(request, plan.budget.parameters());
  Json laws = Json::array();
  for (const planner::LawRow& row : plan.laws) laws.push_back(law_json(row.info, row.vote));
  for (const laws::LawPointer& law : overlays.laws) laws.push_back(law_json(law->info(), 0));
  const bool embeddings = plan.budget.counts_embeddings();
  const TableRequest table{request, stops, hardware, overlays.laws};
  std::optional<double> only;
  if (map.first_row_only) only = tokens_per_parameter_of(request, plan.budget.parameters());
  return {{"schema", kMapSchema},
          {"title", title_of(request)},
          {"created", now_text()},
          {"versions", program_versions()},
          {"verdict", plan.verdict.sentences},
          {"held_equal", plan.budget.description()},
          {"counts_embeddings", embeddings},
          {"embedding_rows", embeddings ? plan.budget.parameters_of(0, 1) : 0},
          {"objective", to_string(request.objective)},
          {"tolerance", request.tolerance},
          {"step_tokens", request.step_tokens},
          {"context", plan.recommendation.shape.context},
          {"options", map.options},
          {"start", start_json(request, plan, stops)},
          {"hardware", hardware_json(hardware)},
          {"laws", laws},
          {"tokens_per_parameter", stops.tokens_per_parameter},
          {"by_parameters", budget_table(table, false, only)},
          {"by_flops", budget_table(table, true, only)},
          {"models", published_models(hardware, request.step_tokens)},
          {"field", time_field(plan.request, hardware)},
          {"overlays", overlays.points}};
}

Json make_map_row(const MapRequest& map, bool by_flops, double tokens_per_parameter) {
  const Plan plan = planner::make_plan(map.plan);
  const MapStops stops = make_stops(map.plan, plan.budget.parameters());
  const std::vector<Hardware> hardware = profiles(map.plan);
  return plan_row({map.plan, stops, hardware, read_overlays(map.overlays).laws}, by_flops,
                  tokens_per_parameter);
}

}  // namespace fathom::report
