#include "fits/run_design.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/units.h"
#include "fits/design_goals.h"
#include "fits/design_picture.h"
#include "fits/surface_draws.h"
#include "fits/surface_scales.h"
#include "laws/levine.h"

namespace fathom::fits {
namespace {

constexpr std::size_t kDraws = 1000;
// A forecast ends at so many times the budget, or so many trajectories.
constexpr double kFarCost = 100;
constexpr int kFarRuns = 4000;
// The first round takes every second size and at most five depths, up to a factor of four from
// the published best depth.
constexpr std::size_t kFirstStride = 2;
constexpr double kFirstReach = 1.45;
constexpr std::array kFirstDepths{-1.3, -0.65, 0.0, 0.65, 1.3};
// The first round may cost this share of the budget, and half of it to see so many sizes.
constexpr double kFirstShare = 0.025;
constexpr double kFirstLimit = 0.5;
constexpr std::size_t kFirstSizes = 4;
// Shapes from which on a surface is safely fitted.
constexpr std::size_t kFirstShapes = 14;

// A round costs at most this share of what was spent before it: early choices rest on little.
constexpr double kGrowth = 0.5;

using ShapeId = std::pair<std::int64_t, std::int64_t>;

std::vector<Candidate> list_candidates(const DesignSpec& spec, const CandidateLimits& limits) {
  std::vector<Candidate> candidates;
  for (const CandidateShape& shape : candidate_shapes(limits)) {
    if (spec.left_out.contains({shape.layers, shape.width})) continue;
    Candidate candidate{shape, spec.lengths(shape.params), 0, {}};
    candidate.cost = spec.cost(shape.layers, shape.width, candidate.lengths);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

void check(const DesignSpec& spec, const std::vector<Candidate>& candidates) {
  if (spec.goals.empty()) throw ConfigError("the design has no goal; name one (a, b, a crossing)");
  if (candidates.empty()) {
    throw ConfigError(
        "no shape fits the design's depths and sizes; allow other depths, sizes or widths");
  }
  if (candidates.size() < kFirstShapes) {
    throw ConfigError(fmt::format(
        "only {} shapes fit the design's depths and sizes, a law needs {}; allow more depths, a "
        "wider range of sizes, a smaller head_size or min_width",
        candidates.size(), kFirstShapes));
  }
  double cheapest = 1e300;
  for (const Candidate& c : candidates) cheapest = std::min(cheapest, c.cost);
  if (!(spec.budget >= cheapest)) {
    throw ConfigError(fmt::format("the design's budget of {} buys no run: the cheapest costs {}",
                                  format_significant(spec.budget, 3),
                                  format_significant(cheapest, 3)));
  }
  for (const DesignGoal& goal : spec.goals) {
    if (!(goal.wanted > 0)) {
      throw ConfigError(fmt::format("the wanted error of {} is not above zero", goal_name(goal)));
    }
    if (goal.kind == GoalKind::best_depth &&
        (goal.params < spec.limits.smallest || goal.params > spec.limits.largest)) {
      throw ConfigError(fmt::format("{} lies outside the design's sizes, {} to {}", goal_name(goal),
                                    format_count(spec.limits.smallest),
                                    format_count(spec.limits.largest)));
    }
    if (goal.kind != GoalKind::crossing) continue;
    for (const std::int64_t layers : {goal.shallow, goal.deep}) {
      if (std::find(spec.limits.depths.begin(), spec.limits.depths.end(), layers) ==
          spec.limits.depths.end()) {
        throw ConfigError(fmt::format("{} needs {} layers, which the design does not allow",
                                      goal_name(goal), layers));
      }
    }
    if (goal.shallow >= goal.deep) {
      throw ConfigError(fmt::format("{}: the deeper network is named first", goal_name(goal)));
    }
  }
}

/// What the runs so far cost: each trajectory by its lengths.
double cost_so_far(std::span<const RunPoint> runs, const DesignSpec& spec) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::uint64_t>, std::set<double>> trajectories;
  for (const RunPoint& run : runs) {
    trajectories[{run.layers, run.width, run.seed}].insert(run.tokens);
  }
  double sum = spec.lost;
  for (const auto& [key, lengths] : trajectories) {
    sum += spec.cost(std::get<0>(key), std::get<1>(key), {lengths.begin(), lengths.end()});
  }
  return sum;
}

/// Hands out seeds: the least positive number no run of the shape has.
class Seeds {
 public:
  explicit Seeds(std::span<const RunPoint> runs) {
    for (const RunPoint& run : runs) used_[{run.layers, run.width}].insert(run.seed);
  }
  std::size_t shapes() const { return used_.size(); }
  bool has(const CandidateShape& shape) const {
    return used_.contains({shape.layers, shape.width});
  }
  std::uint64_t next(const CandidateShape& shape) {
    std::set<std::uint64_t>& used = used_[{shape.layers, shape.width}];
    std::uint64_t seed = 1;
    while (used.contains(seed)) ++seed;
    used.insert(seed);
    return seed;
  }

 private:
  std::map<ShapeId, std::set<std::uint64_t>> used_;
};

/// What is added at once: a trajectory, or two of about one size. At a size not seen before one
/// depth alone tells only the level there; two tell which is better.
using Choice = std::vector<const Candidate*>;

std::vector<Choice> list_choices(const std::vector<Candidate>& candidates) {
  constexpr double kSameSize = 0.2;  // of ln N
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    choices.push_back({&candidates[i]});
    for (std::size_t j = i + 1; j < candidates.size(); ++j) {
      const double apart = std::log(candidates[j].shape.params / candidates[i].shape.params);
      if (std::fabs(apart) < kSameSize &&
          candidates[i].shape.layers != candidates[j].shape.layers) {
        choices.push_back({&candidates[i], &candidates[j]});
      }
    }
  }
  return choices;
}

double cost_of(const Choice& choice) {
  double cost = 0;
  for (const Candidate* candidate : choice) cost += candidate->cost;
  return cost;
}

/// The best choice by gain for cost; null when none fits the money or none helps.
const Choice* pick(const DesignPicture& picture, const std::vector<Choice>& choices, double money) {
  const Choice* best = nullptr;
  double most = 0;
  for (const Choice& choice : choices) {
    const double cost = cost_of(choice);
    if (cost > money) continue;
    const double gain = picture.gain(choice);
    if (gain < 1e-9) continue;
    if (gain / cost > most * (1 + 1e-9)) most = gain / cost, best = &choice;
  }
  return best;
}

/// Cost from here until all goals are decided, as the picture foresees it.
std::optional<double> forecast(DesignPicture picture, const std::vector<Choice>& choices,
                               double most) {
  double cost = 0;
  for (int i = 0; i < kFarRuns && cost < most; ++i) {
    if (picture.all_decided()) return cost;
    const Choice* next = pick(picture, choices, 1e300);
    if (next == nullptr) break;
    for (const Candidate* candidate : *next) picture.add(*candidate);
    cost += cost_of(*next);
  }
  return picture.all_decided() ? std::optional(cost) : std::nullopt;
}

/// Candidates by size: every second rung of the ladder.
std::vector<std::vector<std::size_t>> first_rungs(const DesignSpec& spec,
                                                  const std::vector<Candidate>& candidates) {
  std::vector<std::vector<std::size_t>> rungs;
  double last = 0;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const double params = candidates[c].shape.params;
    if (rungs.empty() || params > last * std::sqrt(spec.limits.rung_ratio)) {
      rungs.emplace_back();
      last = params;
    }
    rungs.back().push_back(c);
  }
  std::vector<std::vector<std::size_t>> chosen;
  for (std::size_t r = 0; r < rungs.size(); r += kFirstStride) chosen.push_back(rungs[r]);
  return chosen;
}

/// Of a rung, depths around the published best depth, without shapes run before.
std::set<std::size_t> first_depths(const DesignSpec& spec, const std::vector<Candidate>& candidates,
                                   const std::vector<std::size_t>& rung, const Seeds& seeds) {
  const double low = std::log(static_cast<double>(spec.limits.depths.front()));
  const double high = std::log(static_cast<double>(spec.limits.depths.back()));
  const double size = candidates[rung.front()].shape.params;
  const double best = std::clamp(std::log(laws::LevineLaw().depth_for(size)), low, high);
  std::set<std::size_t> chosen;
  for (const double off : kFirstDepths) {
    std::optional<std::size_t> nearest;
    double least = 0.6;  // further away is another depth's place
    for (const std::size_t c : rung) {
      const double u = std::log(static_cast<double>(candidates[c].shape.layers));
      if (std::fabs(u - best) > kFirstReach) continue;
      if (std::fabs(u - best - off) < least) least = std::fabs(u - best - off), nearest = c;
    }
    if (nearest && !seeds.has(candidates[*nearest].shape)) chosen.insert(*nearest);
  }
  return chosen;
}

void ask_for(const Candidate& candidate, Seeds& seeds, DesignStep& step) {
  step.batch.push_back({candidate.shape.layers, candidate.shape.width, seeds.next(candidate.shape),
                        candidate.lengths, candidate.cost});
  step.batch_cost += candidate.cost;
}

/// The first round: depths around the published best depth, from the smallest size up as far as a
/// share of the budget reaches; where that leaves too few shapes, any others.
void first_round(const DesignSpec& spec, const std::vector<Candidate>& candidates, Seeds& seeds,
                 double money, DesignStep& step) {
  const double wanted = std::min(money, kFirstShare * spec.budget);
  const double limit = std::min(money, kFirstLimit * spec.budget);
  std::size_t sizes = 0;
  for (const std::vector<std::size_t>& rung : first_rungs(spec, candidates)) {
    const std::set<std::size_t> chosen = first_depths(spec, candidates, rung, seeds);
    double cost = step.batch_cost;
    for (const std::size_t c : chosen) cost += candidates[c].cost;
    if (cost > (sizes < kFirstSizes ? limit : wanted)) break;
    ++sizes;
    for (const std::size_t c : chosen) ask_for(candidates[c], seeds, step);
  }
  for (const Candidate& candidate : candidates) {
    if (seeds.shapes() >= kFirstShapes || step.batch_cost + candidate.cost > limit) break;
    if (!seeds.has(candidate.shape)) ask_for(candidate, seeds, step);
  }
}

/// What it would cost to decide with sizes up to where the crossing is expected.
std::optional<double> cost_with_wider_limits(const SurfacePosterior& posterior,
                                             const DesignSpec& spec,
                                             const std::vector<GoalState>& states) {
  CandidateLimits wider = spec.limits;
  for (const GoalState& state : states) {
    if (!state.out_of_reach || state.goal.kind != GoalKind::crossing) continue;
    const FormPosterior& form = posterior.form(LawForm::free);
    WeightedSample sample;
    for (const WeightedDraw& draw : form.draws) {
      sample.add(form.surface.crossing(draw.point, static_cast<double>(state.goal.shallow),
                                       static_cast<double>(state.goal.deep)),
                 draw.weight);
    }
    sample.sort();
    const double expected = std::exp(std::clamp(sample.quantile(0.5), 0.0, 35.0));
    wider.largest = std::max(wider.largest, std::min(2 * expected, 1000 * wider.largest));
    wider.smallest = std::min(wider.smallest, std::max(expected / 2, wider.smallest / 100));
  }
  std::vector<Candidate> candidates = list_candidates(spec, wider);
  const DesignPicture picture = DesignPicture::cautious(posterior, candidates, states);
  return forecast(picture, list_choices(candidates), kFarCost * spec.budget);
}

/// The runs reach, nearly, to the ends of the sizes and depths allowed.
bool covers(const SurfaceData& data, const CandidateLimits& limits) {
  constexpr double kNearly = 0.4;  // of ln N
  return data.log_size.low < std::log(limits.smallest) + kNearly &&
         data.log_size.high > std::log(limits.largest) - kNearly &&
         data.depths.front() <= limits.depths.front() && data.depths.back() >= limits.depths.back();
}

}  // namespace

std::string goal_name(const DesignGoal& goal) {
  switch (goal.kind) {
    case GoalKind::offset:
      return "a";
    case GoalKind::slope:
      return "b";
    case GoalKind::crossing:
      return fmt::format("{} over {}", goal.deep, goal.shallow);
    case GoalKind::best_depth:
      return fmt::format("best depth at {}", format_count(goal.params));
    case GoalKind::form:
      return "exponential or power law";
  }
  return "";
}

void require_consistent(const DesignSpec& spec) {
  check(spec, list_candidates(spec, spec.limits));
}

DesignStep next_batch(std::span<const RunPoint> runs, const DesignSpec& spec) {
  std::vector<Candidate> candidates = list_candidates(spec, spec.limits);
  check(spec, candidates);
  DesignStep step;
  step.spent = cost_so_far(runs, spec);
  const double money = spec.budget - step.spent;
  Seeds seeds(runs);
  std::string reason;
  std::optional<SurfacePosterior> posterior;
  if (!runs.empty()) posterior = SurfacePosterior::fit(runs, spec.surface, reason);
  if (!posterior) {
    for (const DesignGoal& goal : spec.goals) {
      GoalState state;
      state.goal = goal;
      state.error = state.expected = std::numeric_limits<double>::infinity();
      step.goals.push_back(state);
    }
    step.stage = DesignStage::first_round;
    first_round(spec, candidates, seeds, money, step);
    if (step.batch.empty()) step.stage = DesignStage::budget_spent;
    return step;
  }
  const SurfaceDraws draws(*posterior, kDraws, spec.surface.seed);
  bool any_reachable = false;
  for (const DesignGoal& goal : spec.goals) {
    step.goals.push_back(measure_goal(*posterior, draws, goal));
    // What lies beyond the runs may still lie within the limits.
    step.goals.back().out_of_reach &= covers(posterior->data(), spec.limits);
  }
  // Runs are chosen for what they can decide.
  std::vector<GoalState> followed = step.goals;
  for (GoalState& goal : followed) goal.decided |= goal.out_of_reach;
  DesignPicture picture = DesignPicture::cautious(*posterior, candidates, followed);
  const DesignPicture best =
      DesignPicture::hopeful(*posterior, candidates, step.goals).without_noise(candidates);
  bool all_decided = true;
  for (std::size_t g = 0; g < step.goals.size(); ++g) {
    GoalState& goal = step.goals[g];
    goal.expected = goal.error;
    if (goal.decided) continue;
    all_decided = false;
    // Misfit is judged better as runs come in: half the budget is spent before it ends a study.
    const bool floored = best.need(g) > 1 && step.spent > spec.budget / 2;
    goal.out_of_reach = goal.out_of_reach || floored;
    any_reachable |= !goal.out_of_reach;
  }
  if (all_decided) {
    step.stage = DesignStage::decided;
    step.cost_to_decide = 0;
    return step;
  }
  if (!any_reachable) {
    step.stage = DesignStage::out_of_reach;
    step.cost_to_decide = cost_with_wider_limits(*posterior, spec, step.goals);
    return step;
  }
  const std::vector<Choice> choices = list_choices(candidates);
  step.cost_to_decide = forecast(picture, choices, kFarCost * spec.budget);
  const double round = std::min({money, spec.batch_share * spec.budget, kGrowth * step.spent});
  while (!picture.all_decided() && step.batch_cost < round) {
    const Choice* next =
        pick(picture, choices, step.batch.empty() ? money : round - step.batch_cost);
    if (next == nullptr) break;
    for (const Candidate* candidate : *next) {
      ask_for(*candidate, seeds, step);
      picture.add(*candidate);
    }
  }
  if (step.batch.empty()) {
    step.stage = DesignStage::budget_spent;
    return step;
  }
  for (std::size_t g = 0; g < step.goals.size(); ++g) {
    if (step.goals[g].goal.kind != GoalKind::form) {
      step.goals[g].expected = picture.expected_error(g);
    }
  }
  return step;
}

}  // namespace fathom::fits
