#include "report/map_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
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
Json overlay_points(const fs::path& directory) {
  Json points = Json::array();
  for (const study::RunRow& row : study::collect_rows(directory)) {
    const Json run = study::row_json(row);
    if (!run.value("loss", Json()).is_number() || !run.value("width", Json()).is_number()) continue;
    points.push_back(
        {{"layers", run["layers"]}, {"width", run["width"]}, {"loss", map_number(run["loss"])}});
  }
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
    if (!folder || fs::exists(path / fits::kLawFile)) {
      overlays.laws.push_back(fits::load_study_law(path));
    }
    if (!folder) continue;
    Json points = overlay_points(path);
    if (points.empty()) {
      throw DataError(
          fmt::format("{}: no finished run to lay over the map; see 'fathom study list {}'",
                      path.string(), path.string()));
    }
    const fs::path name = fs::weakly_canonical(path).filename();
    overlays.points.push_back({{"name", name.string()}, {"points", std::move(points)}});
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
          {"start", start_json(request, plan, stops)},
          {"hardware", hardware_json(hardware)},
          {"laws", laws},
          {"tokens_per_parameter", stops.tokens_per_parameter},
          {"by_parameters", budget_table(request, stops, false, overlays.laws, hardware)},
          {"by_flops", budget_table(request, stops, true, overlays.laws, hardware)},
          {"models", published_models(hardware, request.step_tokens)},
          {"field", time_field(plan.request, hardware)},
          {"overlays", overlays.points}};
}

}  // namespace fathom::report
