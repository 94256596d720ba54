#include "planner/plan_objectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/units.h"

namespace fathom::planner {
namespace {

/// What the shape request asks beyond depth and width.
ShapeRequest base_request(const PlanRequest& request) {
  ShapeRequest base = request.base;
  base.vocab = round_vocab(base.vocab, request.rules.tensor_parallel);
  return base;
}

/// The law's optimum as a rounded shape, within the depth limit.
Shape loss_optimal_shape(const Plan& plan) {
  RoundingTarget target;
  target.layers = plan.unrounded.layers;
  if (plan.request.rules.max_layers > 0) {
    target.layers = std::min(target.layers, as_double(plan.request.rules.max_layers));
  }
  target.width = plan.budget.width_at(target.layers);
  target.budget = plan.budget.parameters();
  target.count = [&](const Shape& shape) { return held_count(shape, plan.budget); };
  return round_to_hardware(target, base_request(plan.request), plan.request.rules);
}

}  // namespace

std::vector<ObjectiveRow> choose_objectives(const Plan& plan, const PricingContext& pricing) {
  const double tolerance = plan.request.tolerance;
  const Candidate loss_optimal = price(loss_optimal_shape(plan), pricing, tolerance);

  std::vector<Candidate> candidates{loss_optimal};
  for (const Shape& shape : lattice(plan.budget, base_request(plan.request), plan.request.rules)) {
    candidates.push_back(price(shape, pricing, tolerance));
  }
  const auto best = [&](auto&& allowed, auto&& cost) {
    const Candidate* chosen = &loss_optimal;
    for (const Candidate& candidate : candidates) {
      if (allowed(candidate) && (!allowed(*chosen) || cost(candidate) < cost(*chosen))) {
        chosen = &candidate;
      }
    }
    return *chosen;
  };
  const auto any = [](const Candidate&) { return true; };
  const auto within = [](double limit) {
    return [limit](const Candidate& candidate) { return candidate.penalty <= limit; };
  };

  return {
      {Objective::loss, loss_optimal, fmt::format("optimum of {}", plan.law.title)},
      {Objective::train_time, best(any, [](const Candidate& c) { return c.seconds_to_equal_loss; }),
       fmt::format("least modelled time to within {:.2g} % of the best loss", 100 * tolerance)},
      {Objective::decode_latency,
       best(within(tolerance), [](const Candidate& c) { return c.decode_seconds; }),
       fmt::format("fastest decoding within {:.2g} % of the best loss", 100 * tolerance)},
      {Objective::accuracy,
       best(within(tolerance / 5), [](const Candidate& c) { return -as_double(c.shape.layers); }),
       fmt::format("deepest within {:.2g} % of the best loss", 20 * tolerance)}};
}

}  // namespace fathom::planner
