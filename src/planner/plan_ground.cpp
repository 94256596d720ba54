#include "planner/plan_ground.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "laws/gemstones.h"
#include "laws/search.h"
#include "planner/find_law.h"
#include "shape/flops.h"

namespace fathom::planner {
namespace {

/// With --kv-heads the group, and hence the coefficient, follows from the width: 128 per head.
ShapeRequest with_group(const PlanRequest& request, double parameters) {
  ShapeRequest base = request.base;
  if (base.kv_heads == 0) return base;
  const double layers =
      laws::published_law("practice")->optimum(laws::Budget::non_embedding(parameters)).layers;
  const double width = laws::Budget::non_embedding(parameters).width_at(layers);
  const double head =
      as_double(request.rules.head_size > 0 ? request.rules.head_size : full_head_size(width));
  base.kv_group = std::max<std::int64_t>(1, std::llround(width / head / as_double(base.kv_heads)));
  return base;
}

laws::Budget make_budget(double parameters, const PlanRequest& request) {
  const double c = block_coefficient(with_group(request, parameters));
  return request.count_embeddings
             ? laws::Budget::total(parameters, request.base.vocab, request.base.tied, c)
             : laws::Budget::non_embedding(parameters, c);
}

double tokens_for(const PlanRequest& request, double parameters) {
  return request.tokens.value_or(request.tokens_per_parameter * parameters);
}

/// The laws of a request, ready to be bound to a budget.
struct LawChoice {
  std::vector<laws::LawPointer> voters;
  laws::LawPointer donor = find_law(laws::GemstonesLaw::kName);

  /// The law that plans this budget: the one that was asked for, given a loss where it has none,
  /// or all measured laws together.
  laws::LawPointer bind(const laws::Budget& budget, double tokens) const {
    if (voters.size() == 1 && voters.front()->has_loss()) return voters.front();
    return std::make_shared<laws::Consensus>(voters, donor, budget, tokens);
  }
};

LawChoice choose_laws(const PlanRequest& request) {
  laws::LevineFit fit;
  fit.correlation = request.levine_correlation;
  const auto levine = std::make_shared<laws::LevineLaw>(fit);
  LawChoice choice;
  if (request.law == laws::LevineLaw::kName) {
    choice.voters = {levine};
  } else if (request.law == laws::Consensus::kName) {
    choice.voters = laws::measured_laws();
    for (laws::LawPointer& law : choice.voters) {
      if (law->info().name == laws::LevineLaw::kName) law = levine;
    }
  } else {
    choice.voters = {find_law(request.law)};
  }
  return choice;
}

/// The size whose optimal shape, trained on its tokens, spends the FLOPs: exact training FLOPs with
/// head and causal attention, not 6 N D.
double parameters_for_flops(const PlanRequest& request, const LawChoice& choice) {
  const auto spent = [&](double parameters) {
    const laws::Budget budget = make_budget(parameters, request);
    const double tokens = tokens_for(request, parameters);
    const laws::Optimum best = choice.bind(budget, tokens)->optimum_after(budget, tokens);
    return tokens * train_flops_per_token(best.layers, best.width, budget.block_coefficient(),
                                          as_double(request.base.vocab),
                                          as_double(request.base.context));
  };
  constexpr double kSmallest = 1e4;
  constexpr double kLargest = 1e17;
  if (spent(kSmallest) > *request.flops || spent(kLargest) < *request.flops) {
    throw ConfigError(fmt::format("--flops {:g} buys no model between 10K and 1e17 parameters{}",
                                  *request.flops, request.tokens ? " at these --tokens" : ""));
  }
  return laws::solve_rising(spent, *request.flops, kSmallest, kLargest);
}

}  // namespace

Ground find_ground(const PlanRequest& request) {
  const LawChoice choice = choose_laws(request);
  const double size =
      request.parameters ? *request.parameters : parameters_for_flops(request, choice);
  const laws::Budget budget = make_budget(size, request);
  const double tokens = tokens_for(request, size);
  return {budget, tokens, choice.bind(budget, tokens)};
}

}  // namespace fathom::planner
