#include "study/robust.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "study/study_rows.h"

namespace fathom::study {
namespace {

// Shapes of about one size, and depths not too far from the best.
constexpr double kSameSize = 0.3;     // of ln N
constexpr double kDepthReach = 1.45;  // of ln L: a factor of about four
constexpr std::size_t kMostShapes = 5;
constexpr std::size_t kLeastShapes = 3;

double chosen_size(const fits::SurfaceFit& surface, std::optional<double> size) {
  if (size) return *size;
  for (auto best = surface.best_depth.rbegin(); best != surface.best_depth.rend(); ++best) {
    if (best->low && best->high) return best->params;
  }
  throw DataError(
      "the best depth has no two-sided interval at any size, so there is no answer to test; add "
      "runs, or give a size with --size");
}

struct TrainedShape {
  GridShape shape;
  double params = 0;
  std::uint64_t most_seed = 0;
};

/// Shapes of the study with a result, by depth nearest to the best one.
std::vector<TrainedShape> shapes_near(const std::vector<RunRow>& rows, double params,
                                      double layers) {
  std::map<GridShape, TrainedShape> found;
  for (const RunRow& row : rows) {
    // Rows of bare points have no heads: such a study was not kept and cannot be trained further.
    if (!row.in_spec || !has_result(row.status) || row.heads < 1) continue;
    if (std::fabs(std::log(as_double(row.non_embedding) / params)) > kSameSize) continue;
    if (std::fabs(std::log(as_double(row.layers) / layers)) > kDepthReach) continue;
    TrainedShape& shape = found[{row.layers, row.width, row.heads}];
    shape.shape = {row.layers, row.width, row.heads};
    shape.params = as_double(row.non_embedding);
    shape.most_seed = std::max(shape.most_seed, row.seed);
  }
  // One shape per depth: the one nearest in size.
  std::map<std::int64_t, TrainedShape> by_depth;
  const auto miss = [&](const TrainedShape& s) { return std::fabs(std::log(s.params / params)); };
  for (const auto& [key, shape] : found) {
    const auto [place, is_new] = by_depth.try_emplace(shape.shape.layers, shape);
    if (!is_new && miss(shape) < miss(place->second)) place->second = shape;
  }
  std::vector<TrainedShape> shapes;
  for (const auto& [depth, shape] : by_depth) shapes.push_back(shape);
  std::stable_sort(shapes.begin(), shapes.end(), [&](const auto& a, const auto& b) {
    const auto off = [&](const TrainedShape& s) {
      return std::fabs(std::log(as_double(s.shape.layers) / layers));
    };
    return off(a) < off(b);
  });
  if (shapes.size() > kMostShapes) shapes.resize(kMostShapes);
  return shapes;
}

/// The spec with one thing changed, trained to its longest budget.
StudySpec changed_spec(const StudySpec& spec, const std::vector<std::string>& settings) {
  StudySpec changed = read_study_spec_text(spec.text, spec.origin, settings);
  if (!changed.budget.tokens.empty()) changed.budget.tokens = {changed.budget.tokens.back()};
  return changed;
}

}  // namespace

RobustPlan plan_robust(const Study& study, const std::vector<RunRow>& rows,
                       std::optional<double> size) {
  std::string reason;
  const auto surface = fits::fit_surface(points_of(rows), {}, reason);
  if (!surface) {
    throw DataError(fmt::format("{}: no surface was fitted, so there is no answer to test: {}",
                                study.folder.name(), reason));
  }
  RobustPlan plan{
      .study = {
          .folder = study.folder, .spec = study.spec, .runs = {}, .has_tokens = study.has_tokens}};
  plan.params = chosen_size(*surface, size);
  const auto posterior = fits::SurfacePosterior::fit(points_of(rows), {}, reason);
  plan.layers = fits::best_depth_at(*posterior, plan.params).layers;
  const std::vector<TrainedShape> shapes = shapes_near(rows, plan.params, plan.layers);
  if (shapes.size() < kLeastShapes) {
    throw DataError(fmt::format(
        "{}: {} of its shapes lie near {} parameters and {:.1f} layers, {} are needed; give "
        "another size with --size",
        study.folder.name(), shapes.size(), format_count(plan.params), plan.layers, kLeastShapes));
  }
  for (const TrainedShape& shape : shapes) plan.shapes.push_back(shape.shape);
  const train::RunSpec base = study.spec.run_spec(study.spec.first_shape(), 1000, 1);
  const std::uint64_t seed = study.spec.seeds.all.front();
  const auto tokens = read_token_facts(study.folder);
  const auto add = [&](const std::string& name, const std::vector<std::string>& settings,
                       bool new_seed) {
    std::vector<Trajectory> trajectories;
    for (const TrainedShape& shape : shapes) {
      trajectories.push_back({shape.shape, new_seed ? shape.most_seed + 1 : seed});
    }
    RobustChange change{name, {}};
    for (PlannedRun& run : plan_runs(changed_spec(study.spec, settings), trajectories, tokens)) {
      run.spec.tokens = study.folder.tokens().string();
      change.ids.push_back(run.id);
      plan.study.runs.push_back(std::move(run));
    }
    plan.changes.push_back(std::move(change));
  };
  for (const double factor : {0.5, 2.0}) {
    add(fmt::format("rate x {}", factor),
        {fmt::format("train.learning_rate={}", toml_text(base.learning_rate * factor))}, false);
  }
  const bool even = base.batch % 2 == 0;
  const std::int64_t batch = even ? base.batch / 2 : base.batch * 2;
  add(even ? "batch x 0.5" : "batch x 2", {fmt::format("train.batch={}", batch)}, false);
  add("another seed", {}, true);
  return plan;
}

fits::Robustness judge_robust(const RobustPlan& plan, const std::vector<RunRow>& rows) {
  std::map<std::string, fits::RunPoint> points;
  for (RunRow row : rows) {
    row.in_spec = true;
    for (const fits::RunPoint& point : points_of({row})) points[point.id] = point;
  }
  std::vector<fits::TrainingChange> changes;
  for (const RobustChange& change : plan.changes) {
    fits::TrainingChange runs{change.name, {}};
    for (const std::string& id : change.ids) {
      if (const auto found = points.find(id); found != points.end()) {
        runs.runs.push_back(found->second);
      }
    }
    changes.push_back(std::move(runs));
  }
  std::string reason;
  const auto verdict = fits::judge_robustness(points_of(rows), changes, plan.params, {}, reason);
  if (!verdict) throw DataError("no surface was fitted, so there is no answer to test: " + reason);
  return *verdict;
}

}  // namespace fathom::study
