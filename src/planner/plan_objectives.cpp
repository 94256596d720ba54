#include "planner/plan_objectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"

namespace fathom::planner {
namespace {

/// How far shapes may be from the budget, in steps: a wider one is used only when constraints or
/// the coarse lattice of tiny models leave nothing inside the band. Beyond the last there is no
/// plan.
constexpr std::array kBudgetSlack{0.03, 0.06, 0.12};

/// What the shape request specifies beyond depth and width.
ShapeRequest base_request(const PlanRequest& request) {
  ShapeRequest base = request.base;
  base.vocab = round_vocab(base.vocab, request.rules.tensor_parallel);
  return base;
}

[[noreturn]] void refuse(const Plan& plan, const Candidate& nearest) {
  const std::string nearest_text =
      fmt::format("the nearest shape, {}, has {}", depth_by_width(nearest.shape),
                  format_count(nearest.parameters));
  if (plan.budget.counts_embeddings()) {
    const ParameterCount count = count_parameters(nearest.shape);
    throw ConfigError(fmt::format(
        "no shape of {} parameters with embeddings: {}, {} of them in the embedding of {} words; "
        "raise SIZE or lower --vocab",
        format_count(plan.budget.parameters()), nearest_text,
        format_count(as_double(count.embedding + count.head)), format_whole(nearest.shape.vocab)));
  }
  throw ConfigError(
      fmt::format("no shape of {} parameters keeps these constraints: {}; relax --max-depth, "
                  "--width-multiple, --head-size or the parallel sizes",
                  format_count(plan.budget.parameters()), nearest_text));
}

void keep_near_budget(std::vector<Candidate>& candidates, const Plan& plan) {
  const auto off = [](const Candidate& c) { return std::fabs(c.off_budget); };
  const auto nearest =
      std::min_element(candidates.begin(), candidates.end(),
                       [&](const Candidate& a, const Candidate& b) { return off(a) < off(b); });
  if (off(*nearest) > kBudgetSlack.back()) refuse(plan, *nearest);
  double slack = kBudgetSlack.back();
  for (const double step : kBudgetSlack) {
    const bool enough = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) {
      return off(c) <= step && c.penalty <= plan.request.tolerance;
    });
    if (!enough) continue;
    slack = step;
    break;
  }
  std::erase_if(candidates, [&](const Candidate& c) { return off(c) > slack; });
}

}  // namespace

std::vector<Candidate> price_lattice(const Plan& plan, const PricingContext& pricing) {
  const RoundingRules& rules = plan.request.rules;
  Interval depths{std::min(plan.band.low, plan.unrounded.layers) / 2,
                  std::max({2 * plan.band.high, 2 * plan.unrounded.layers,
                            as_double(2 * rules.pipeline_parallel)})};
  // Bands of laws far from their data have no upper end; nothing there is worth pricing.
  depths.high = std::min(depths.high, 8 * std::max(8.0, plan.unrounded.layers));
  if (rules.max_layers > 0) {
    depths.low = std::min(depths.low, as_double(rules.max_layers) / 2);
  }
  const ShapeRequest base = base_request(plan.request);
  std::vector<Candidate> candidates;
  for (const Shape& shape : lattice(plan.budget, depths, base, rules)) {
    candidates.push_back(price(shape, pricing, plan.request.tolerance));
  }
  if (candidates.empty()) {
    throw ConfigError(
        "no width fits the rules; relax --width-multiple, --head-size, --kv-group or --kv-heads");
  }
  keep_near_budget(candidates, plan);
  return candidates;
}

std::vector<ObjectiveRow> choose_objectives(const Plan& plan) {
  const double tolerance = plan.request.tolerance;
  const auto best = [&](auto&& cost) {
    return *std::min_element(
        plan.lattice.begin(), plan.lattice.end(),
        [&](const Candidate& a, const Candidate& b) { return cost(a) < cost(b); });
  };
  const Candidate loss = best([](const Candidate& c) { return c.penalty; });
  // Where constraints leave nothing inside the tolerance, the least loss takes its place.
  const double limit = std::max(tolerance, loss.penalty);
  const auto among_equals = [&](const Candidate& c, double cost) {
    return c.penalty <= limit ? cost : HUGE_VAL;
  };
  return {
      {Objective::loss, loss,
       fmt::format("least loss: {}", plan.law.name == laws::Consensus::kName ? "the laws, weighted"
                                                                             : plan.law.title)},
      {Objective::train_time,
       best([&](const Candidate& c) { return among_equals(c, c.seconds_to_equal_loss); }),
       fmt::format("least time to within {:.2g} % of the best loss", 100 * tolerance)},
      {Objective::decode_latency,
       best([&](const Candidate& c) { return among_equals(c, c.decode_seconds); }),
       fmt::format("fastest decoding within {:.2g} % of the best loss", 100 * tolerance)}};
}

}  // namespace fathom::planner
