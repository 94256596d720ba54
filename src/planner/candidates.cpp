#include "planner/candidates.h"

#include <cmath>
#include <limits>

#include "core/counts.h"
#include "core/error.h"
#include "laws/search.h"
#include "shape/parameters.h"
#include "shape/timing.h"

namespace fathom::planner {
namespace {

constexpr double kMinTokens = 1e3, kMaxTokens = 1e18;

}  // namespace

double held_count(const Shape& shape, const laws::Budget& budget) {
  const ParameterCount count = count_parameters(shape);
  return as_double(budget.counts_embeddings() ? count.total() : count.non_embedding());
}

Candidate price(const Shape& shape, const PricingContext& context, double tolerance) {
  const double L = as_double(shape.layers);
  const double D = as_double(shape.width);
  const laws::LossSurface& surface = context.surface;
  const double held = surface.budget().parameters();
  const double target = surface.best_loss() * (1 + tolerance);

  Candidate candidate;
  candidate.shape = shape;
  candidate.parameters = held_count(shape, surface.budget());
  candidate.off_budget = std::log(candidate.parameters / held);
  // Shapes differ from the budget by a rounding step; the penalty compares depth at equal size, so
  // it is taken on the surface.
  candidate.penalty = surface.penalty(L);
  candidate.step_seconds = model_step_time(shape, context.hardware, context.step_tokens).total();
  candidate.tokens_per_second = as_double(context.step_tokens) / candidate.step_seconds;
  candidate.train_seconds = surface.tokens() / candidate.tokens_per_second;
  candidate.decode_seconds =
      model_decode_time(shape, context.hardware, as_double(shape.context) / 2).total();

  const auto loss = [&](double tokens) { return *surface.law().loss(L, D, held, tokens); };
  const auto reaches = [&](double tokens) { return loss(tokens) <= target; };
  if (!reaches(kMaxTokens)) {
    candidate.tokens_to_equal_loss = std::numeric_limits<double>::infinity();
  } else if (loss(kMinTokens) == loss(kMaxTokens)) {
    candidate.tokens_to_equal_loss = surface.tokens();  // a law of one training length
  } else {
    candidate.tokens_to_equal_loss = laws::first_true(reaches, kMinTokens, kMaxTokens);
  }
  candidate.seconds_to_equal_loss =
      candidate.tokens_to_equal_loss * candidate.step_seconds / as_double(context.step_tokens);
  return candidate;
}

std::vector<Shape> lattice(const laws::Budget& budget, const Interval& depths,
                           const ShapeRequest& base, const RoundingRules& rules) {
  std::vector<Shape> shapes;
  const bool fine = !feed_forward_is_free(base);
  for (const std::int64_t layers : friendly_depths(depths.low, depths.high, rules, fine)) {
    RoundingTarget target;
    target.layers = layers;
    target.width = budget.width_at(as_double(layers));
    target.budget = budget.parameters();
    target.count = [&](const Shape& shape) { return held_count(shape, budget); };
    if (const auto shape = shape_at_depth(target, base, rules)) shapes.push_back(*shape);
  }
  return shapes;
}

}  // namespace fathom::planner
