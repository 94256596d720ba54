#include "planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "laws/gemstones.h"
#include "laws/search.h"
#include "planner/find_law.h"
#include "planner/plan_objectives.h"
#include "planner/plan_statements.h"
#include "shape/flops.h"
#include "theory/separation_bounds.h"

namespace fathom::planner {
namespace {

constexpr int kCurvePoints = 120;

laws::Budget make_budget(double parameters, const PlanRequest& request) {
  const double c = block_coefficient(request.base);
  return request.count_embeddings
             ? laws::Budget::total(parameters, request.base.vocab, request.base.tied, c)
             : laws::Budget::non_embedding(parameters, c);
}

double tokens_for(const PlanRequest& request, double parameters) {
  return request.tokens.value_or(kTokensPerParameter * parameters);
}

/// The size whose optimal shape, trained on its tokens, spends the FLOPs: exact training FLOPs with
/// head and causal attention, not 6 N D.
double parameters_for_flops(const PlanRequest& request, const laws::Law& law) {
  const auto spent = [&](double parameters) {
    const laws::Budget budget = make_budget(parameters, request);
    const laws::Optimum best = law.optimum(budget);
    return tokens_for(request, parameters) *
           train_flops_per_token(best.layers, best.width, budget.block_coefficient(),
                                 as_double(request.base.vocab), as_double(request.base.context));
  };
  constexpr double kSmallest = 1e4;
  constexpr double kLargest = 1e17;
  if (spent(kSmallest) > *request.flops || spent(kLargest) < *request.flops) {
    throw ConfigError(fmt::format("--flops {:g} buys no model between 10K and 1e17 parameters{}",
                                  *request.flops, request.tokens ? " at these --tokens" : ""));
  }
  return laws::first_true([&](double n) { return spent(n) >= *request.flops; }, kSmallest,
                          kLargest);
}

void check(const PlanRequest& request) {
  if (request.parameters.has_value() == request.flops.has_value()) {
    throw ConfigError("give either a SIZE (like 1.3B) or --flops, one of them and not both");
  }
  if (request.parameters && (*request.parameters < 1e4 || *request.parameters > 1e17)) {
    throw ConfigError(fmt::format("SIZE {} is outside 10K to 1e17 parameters",
                                  format_count(*request.parameters)));
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

laws::LawPointer law_for(const PlanRequest& request) {
  if (request.law == laws::LevineLaw::kName) {
    laws::LevineFit fit;
    fit.correlation = request.levine_correlation;
    return std::make_shared<laws::LevineLaw>(fit);
  }
  return find_law(request.law);
}

/// The published laws, with the user's own law first if there is one.
std::vector<LawRow> side_by_side(const laws::LawPointer& chosen, const laws::LossSurface& surface,
                                 double tolerance) {
  std::vector<laws::LawPointer> laws = laws::published_laws();
  if (chosen->info().name.starts_with("study:")) laws.insert(laws.begin(), chosen);
  std::vector<LawRow> rows;
  for (const laws::LawPointer& law : laws) {
    const laws::Budget& budget = surface.budget();
    LawRow row{law->info(), law->optimum_after(budget, surface.tokens()), law->evidence(budget),
               std::nullopt, 0};
    if (law->has_loss())
      row.band = laws::LossSurface(*law, budget, surface.tokens()).band(tolerance);
    row.penalty = surface.penalty(row.optimum.layers);
    rows.push_back(row);
  }
  return rows;
}

/// From half the band's lower edge to twice its upper one, evenly in ln L.
std::vector<PenaltyPoint> penalty_curve(const laws::LossSurface& surface, const Interval& band,
                                        double recommended) {
  const double low = std::max(1.0, std::min(band.low, recommended) / 2);
  const double high = std::max(band.high, recommended) * 2;
  std::vector<PenaltyPoint> curve;
  for (int i = 0; i < kCurvePoints; ++i) {
    const double share = as_double(i) / (kCurvePoints - 1);
    const double layers = low * std::pow(high / low, share);
    curve.push_back({layers, surface.budget().width_at(layers), surface.penalty(layers)});
  }
  return curve;
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

  const laws::LawPointer law = law_for(request);
  const laws::LawPointer loss_law = law->has_loss() ? law : find_law(laws::GemstonesLaw::kName);
  const double size =
      request.parameters ? *request.parameters : parameters_for_flops(request, *law);

  Plan plan{.request = request,
            .budget = make_budget(size, request),
            .tokens = tokens_for(request, size),
            .law = law->info(),
            .law_evidence = laws::Evidence::fitted,
            .unrounded = {},
            .recommendation = {},
            .parameters = {},
            .train_flops = 0,
            .regime = DepthRegime::transition,
            .transition_width = 0,
            .transition_layers = 0,
            .theory_threshold = 0,
            .loss_law = loss_law->info(),
            .loss_law_evidence = laws::Evidence::fitted,
            .band = {},
            .best_layers = 0,
            .curve = {},
            .laws = {},
            .objectives = {},
            .neighbours = {},
            .statements = {},
            .warnings = {},
            .hardware = find_hardware(request.hardware)};
  plan.law_evidence = law->evidence(plan.budget);
  plan.unrounded = law->optimum_after(plan.budget, plan.tokens);
  const laws::LossSurface surface(*loss_law, plan.budget, plan.tokens);
  plan.loss_law_evidence = loss_law->evidence(plan.budget);
  plan.best_layers = surface.best_layers();
  plan.band = surface.band(request.tolerance);
  plan.laws = side_by_side(law, surface, request.tolerance);

  const PricingContext pricing{surface, plan.hardware, request.step_tokens};
  plan.objectives = choose_objectives(plan, pricing);
  for (const ObjectiveRow& row : plan.objectives) {
    if (row.objective == request.objective) plan.recommendation = row.candidate;
  }
  const Shape& shape = plan.recommendation.shape;
  const double L = as_double(shape.layers);
  const double D = as_double(shape.width);
  plan.parameters = count_parameters(shape);
  plan.train_flops = count_flops(shape).train_per_token * plan.tokens;
  const laws::LevineLaw levine;
  const laws::Optimum transition =
      levine.optimum(laws::Budget::non_embedding(paper_parameters(L, D)));
  plan.transition_width = levine.transition_width(L);
  plan.transition_layers = transition.layers;
  const double slack = std::max(1.0, transition.layers_interval->high - transition.layers);
  plan.regime = L > transition.layers + slack   ? DepthRegime::inefficient
                : L < transition.layers - slack ? DepthRegime::efficient
                                                : DepthRegime::transition;
  plan.theory_threshold = theory::depth_threshold(shape.width);
  plan.curve = penalty_curve(surface, plan.band, L);
  plan.neighbours = nearest_published(as_double(plan.parameters.non_embedding()), L, 6);
  add_statements(plan);
  return plan;
}

}  // namespace fathom::planner
