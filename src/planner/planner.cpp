#include "planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "planner/plan_ground.h"
#include "planner/plan_objectives.h"
#include "planner/plan_statements.h"
#include "planner/verdict.h"
#include "shape/flops.h"
#include "theory/separation_bounds.h"

namespace fathom::planner {
namespace {

constexpr int kCurvePoints = 120;

void check(const PlanRequest& request) {
  if (request.parameters.has_value() == request.flops.has_value()) {
    throw ConfigError("give a SIZE (like 1.3B) or --flops, and not both");
  }
  if (request.parameters && (*request.parameters < 1e4 || *request.parameters > 1e17)) {
    throw ConfigError(fmt::format("SIZE {} is outside 10K to 1e17 parameters",
                                  format_count(*request.parameters)));
  }
  if (request.tokens && (*request.tokens < 1 || *request.tokens > 1e24)) {
    throw ConfigError(fmt::format("--tokens {:g} is outside 1 to 1e24", *request.tokens));
  }
  if (request.tokens_per_parameter < 1e-6 || request.tokens_per_parameter > 1e9) {
    throw ConfigError(fmt::format("--tokens-per-parameter {:g} is outside 1e-6 to 1e9",
                                  request.tokens_per_parameter));
  }
  const auto at_least_one = [](std::int64_t value, const char* name) {
    if (value < 1) throw ConfigError(fmt::format("{} must be at least 1", name));
  };
  at_least_one(request.rules.tensor_parallel, "--tensor-parallel");
  at_least_one(request.rules.pipeline_parallel, "--pipeline-parallel");
  at_least_one(request.base.kv_group, "--kv-group");
  at_least_one(request.step_tokens, "--step-tokens");
  if (std::fabs(request.levine_correlation) > 1) {
    throw ConfigError("--levine-correlation must lie between -1 and 1");
  }
  if (request.rules.max_layers > 0 && request.rules.max_layers < request.rules.pipeline_parallel) {
    throw ConfigError("--max-depth is below --pipeline-parallel: a stage needs a layer");
  }
}

/// The published laws, with the user's own law first if there is one.
std::vector<LawRow> side_by_side(const laws::LawPointer& asked, const laws::LawPointer& chosen,
                                 const laws::LossSurface& surface, double tolerance) {
  std::vector<laws::LawPointer> laws = laws::published_laws();
  if (asked->info().name.starts_with("study:")) laws.insert(laws.begin(), asked);
  const auto* consensus = dynamic_cast<const laws::Consensus*>(chosen.get());
  std::vector<LawRow> rows;
  for (const laws::LawPointer& law : laws) {
    const laws::Budget& budget = surface.budget();
    LawRow row{.info = law->info(),
               .optimum = law->optimum_after(budget, surface.tokens()),
               .evidence = law->optimum_evidence(budget, surface.tokens()),
               .band = std::nullopt,
               .penalty = 0,
               .vote = 0,
               .outside = {}};
    const double layers = row.optimum.layers;
    if (row.info.fitted) {
      row.outside = laws::outside_text(
          row.info, {budget.block_parameters_at(layers), surface.tokens(), layers});
    }
    if (law->has_loss())
      row.band = laws::LossSurface(*law, budget, surface.tokens()).band(tolerance);
    row.penalty = surface.penalty(layers);
    for (const laws::Vote& vote : consensus ? consensus->votes() : std::vector<laws::Vote>{}) {
      if (vote.law->info().name == row.info.name) row.vote = vote.weight;
    }
    rows.push_back(row);
  }
  return rows;
}

/// From half the band's lower edge to twice its upper one, evenly in ln L; where the pick is a
/// depth that was trained, no farther than what was trained.
std::vector<PenaltyPoint> penalty_curve(const laws::LossSurface& surface, const Plan& plan) {
  const double recommended = as_double(plan.recommendation.shape.layers);
  const Interval& band = plan.band;
  double low = std::max(1.0, std::min(band.low, recommended) / 2);
  double high = std::max(band.high, recommended) * 2;
  const Interval trained = trained_depths(plan);
  if (recommended >= trained.low && recommended <= trained.high) {
    low = std::max(low, trained.low);
    high = std::min(high, trained.high);
  }
  std::vector<PenaltyPoint> curve;
  for (int i = 0; i < kCurvePoints; ++i) {
    const double share = as_double(i) / (kCurvePoints - 1);
    const double layers = low * std::pow(high / low, share);
    curve.push_back({layers, surface.budget().width_at(layers), surface.penalty(layers)});
  }
  return curve;
}

/// Levine's transition depth for the recommended shape's size, and where the shape is relative to
/// it.
void place_in_regime(Plan& plan) {
  const double L = as_double(plan.recommendation.shape.layers);
  const double D = as_double(plan.recommendation.shape.width);
  const double size = paper_parameters(L, D);
  const laws::LevineLaw levine;
  const laws::Optimum transition = levine.optimum(laws::Budget::non_embedding(size));
  plan.transition_width = levine.transition_width(L);
  plan.transition_layers = transition.layers;
  if (levine.evidence({size, plan.tokens, L}) != laws::Evidence::fitted) return;
  const double slack = std::max(1.0, transition.layers_interval->high - transition.layers);
  plan.regime = L > transition.layers + slack   ? DepthRegime::inefficient
                : L < transition.layers - slack ? DepthRegime::efficient
                                                : DepthRegime::transition;
}

void place_on_devices(Plan& plan) {
  const PlanRequest& request = plan.request;
  const std::int64_t copy = request.rules.tensor_parallel * request.rules.pipeline_parallel;
  plan.sharding = {.gpus = request.gpus > 0 ? request.gpus : copy,
                   .tensor = request.rules.tensor_parallel,
                   .pipeline = request.rules.pipeline_parallel,
                   .zero = request.zero,
                   .micro_batch = request.micro_batch,
                   .recompute = request.recompute};
  const Shape& shape = plan.recommendation.shape;
  plan.device_memory = count_device_memory(shape, plan.sharding);
  if (!fits_in_memory(plan.device_memory, plan.hardware)) {
    plan.fitting = find_fitting(shape, plan.sharding, plan.hardware);
  }
}

/// A plan with only the question filled in.
Plan empty_plan(const PlanRequest& request, const Ground& ground,
                const std::optional<RefusedLaw>& refused) {
  return {.request = request,
          .budget = ground.budget,
          .tokens = ground.tokens,
          .law = ground.law->info(),
          .law_evidence = laws::Evidence::fitted,
          .unrounded = {},
          .recommendation = {},
          .parameters = {},
          .train_flops = 0,
          .regime = std::nullopt,
          .transition_width = 0,
          .transition_layers = 0,
          .theory_threshold = 0,
          .loss_law = ground.law->info(),
          .loss_law_evidence = laws::Evidence::fitted,
          .band = {},
          .best_layers = 0,
          .curve = {},
          .lattice = {},
          .laws = {},
          .verdict = {},
          .objectives = {},
          .neighbours = {},
          .statements = {},
          .warnings = {},
          .refused = refused,
          .sharding = {},
          .device_memory = {},
          .memory = {},
          .fitting = std::nullopt,
          .hardware = find_hardware(request.hardware)};
}

}  // namespace

WholeDepths whole_depths(const Interval& band) {
  return {static_cast<std::int64_t>(std::ceil(band.low)),
          static_cast<std::int64_t>(std::floor(band.high))};
}

Plan make_plan(const PlanRequest& original) {
  check(original);
  PlanRequest request = original;
  if (request.base.vocab == 0) request.base.vocab = kDefaultVocab;
  if (request.base.context == 0) request.base.context = kDefaultContext;

  std::optional<RefusedLaw> refused;
  Ground ground = find_ground(request);
  const laws::LawPointer asked = ground.law;
  if (auto reasons = ground.law->objections(ground.budget, ground.tokens); !reasons.empty()) {
    refused = RefusedLaw{ground.law->info(), std::move(reasons)};
    request.law = laws::Consensus::kName;
    ground = find_ground(request);
  }
  const auto& [budget, tokens, law] = ground;

  Plan plan = empty_plan(request, ground, refused);
  plan.unrounded = law->optimum_after(budget, tokens);
  const laws::LossSurface surface(*law, budget, tokens);
  plan.best_layers = surface.best_layers();
  plan.band = surface.band(request.tolerance);
  plan.laws = side_by_side(asked, law, surface, request.tolerance);

  plan.lattice = price_lattice(plan, {surface, plan.hardware, request.step_tokens});
  plan.objectives = choose_objectives(plan);
  for (const ObjectiveRow& row : plan.objectives) {
    if (row.objective == request.objective) plan.recommendation = row.candidate;
  }
  const Shape& shape = plan.recommendation.shape;
  const double L = as_double(shape.layers);
  const laws::Place place{budget.block_parameters_at(L), tokens, L};
  plan.law_evidence = law->evidence(place);
  plan.loss_law_evidence = law->loss_evidence(place);
  plan.parameters = count_parameters(shape);
  plan.train_flops = count_flops(shape).train_per_token * plan.tokens;
  place_in_regime(plan);
  plan.theory_threshold = theory::depth_threshold(shape.width);
  plan.curve = penalty_curve(surface, plan);
  plan.neighbours = nearest_published(as_double(plan.parameters.non_embedding()), L, 6);
  place_on_devices(plan);
  plan.verdict = make_verdict(plan);
  add_statements(plan);
  return plan;
}

}  // namespace fathom::planner
