// A design against the `levine` grid grown evenly, on planted worlds: FLOPs until the goal's error
// reaches the target. Both are judged by the same surface; only the choice of runs differs.
#include <algorithm>
#include <cmath>
#include <optional>

#include "fits/planted_world.h"
#include "fits/run_design.h"
#include "planted_parts.h"

namespace fathom::fits {
namespace {

constexpr double kTokens = 1e8;
constexpr int kMostSeeds = 16;
constexpr double kBudget = kMostSeeds * 9.4e16;  // of a design: as much as that many grids
constexpr int kMostRounds = 60;

double flops(std::int64_t layers, std::int64_t width) {
  const auto d = static_cast<double>(width);
  return 6 * 12 * static_cast<double>(layers) * d * d * kTokens;
}

DesignSpec spec_for(const DesignGoal& goal, double budget) {
  DesignSpec spec;
  spec.goals = {goal};
  spec.limits.depths = {2, 3, 4, 6, 8, 12, 16, 24};
  spec.limits.smallest = 2e5;
  spec.limits.largest = 1.9e7;
  spec.limits.least_width = 32;  // as the grid's
  spec.lengths = [](double) { return std::vector<double>{kTokens}; };
  spec.cost = [](std::int64_t layers, std::int64_t width, const std::vector<double>&) {
    return flops(layers, width);
  };
  spec.budget = budget;
  return spec;
}

/// One round: the FLOPs spent so far and the goal's error.
struct Round {
  double cost = 0;
  double error = 0;
  bool holds = false;  // the stated interval covers the truth
};
using Curve = std::vector<Round>;

double truth_of(const PlantedWorld& world, const DesignGoal& goal, std::uint64_t draw) {
  switch (goal.kind) {
    case GoalKind::offset:
      return world.a;
    case GoalKind::slope:
      return world.b;
    case GoalKind::crossing:
      return std::exp(
          world.true_crossing(goal.shallow, goal.deep, std::log(2e5), std::log(1.9e7), draw));
    default:
      return std::exp(world.true_best_log_depth(std::log(goal.params), draw));
  }
}

void add_round(const char* kind, const PlantedWorld& world, const GoalState& state, double cost,
               std::uint64_t draw, bool print, Curve& curve) {
  const DesignGoal& goal = state.goal;
  const double truth = truth_of(world, goal, draw);
  const Round round{cost, state.error,
                    (!state.low || *state.low <= truth) && (!state.high || truth <= *state.high)};
  curve.push_back(round);
  if (!print) return;
  fmt::print("{},{},{},{:.4g},{:.4g}\n", kind, goal_name(goal), draw, round.cost, round.error);
  std::fflush(stdout);
}

/// The grid of examples/studies/levine.toml with 1, 2, 3, ... seeds of every shape.
Curve grid_curve(const PlantedWorld& world, const DesignGoal& goal, std::uint64_t draw,
                 bool print) {
  const auto shapes = planted_ladder(
      {2, 3, 6, 12, 24}, {2e5, 5e5, 1.2e6, 3e6, 7.5e6, 19e6}, [](double) { return 1; }, 32);
  std::vector<RunPoint> runs;
  Curve curve;
  double cost = 0;
  for (int seed = 1; seed <= kMostSeeds; ++seed) {
    for (const PlannedShape& shape : shapes) {
      runs.push_back(
          world.run(shape.layers, shape.width, static_cast<std::uint64_t>(seed), kTokens, draw));
      cost += flops(shape.layers, shape.width);
    }
    // Measures the goal and chooses no runs: the budget is spent.
    const DesignStep step = next_batch(runs, spec_for(goal, cost));
    add_round("grid", world, step.goals.front(), cost, draw, print, curve);
    if (step.goals.front().decided) break;
  }
  return curve;
}

Curve design_curve(const PlantedWorld& world, const DesignGoal& goal, std::uint64_t draw,
                   bool print) {
  const DesignSpec spec = spec_for(goal, kBudget);
  std::vector<RunPoint> runs;
  Curve curve;
  for (int round = 0; round < kMostRounds; ++round) {
    const DesignStep step = next_batch(runs, spec);
    if (!runs.empty()) {
      add_round("design", world, step.goals.front(), step.spent, draw, print, curve);
    }
    if (step.batch.empty()) break;
    for (const DesignRun& run : step.batch) {
      runs.push_back(world.run(run.layers, run.width, run.seed, kTokens, draw));
    }
  }
  return curve;
}

/// The first round whose error is at most the target.
std::optional<Round> decided_in(const Curve& curve, double target) {
  for (const Round& round : curve) {
    if (round.error <= target) return round;
  }
  return std::nullopt;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return NAN;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// One target error over all worlds.
void print_share(const DesignGoal& goal, const std::vector<Curve>& grid,
                 const std::vector<Curve>& design) {
  std::vector<double> shares, grids, designs;
  int only_design = 0, only_grid = 0, neither = 0, held = 0;
  for (std::size_t w = 0; w < grid.size(); ++w) {
    const auto by_grid = decided_in(grid[w], goal.target);
    const auto by_design = decided_in(design[w], goal.target);
    if (by_grid) grids.push_back(by_grid->cost);
    if (by_design) designs.push_back(by_design->cost), held += by_design->holds;
    // Undecided counts as more than anything decided, on either side.
    if (by_grid && by_design) shares.push_back(by_design->cost / by_grid->cost);
    if (by_grid && !by_design) ++only_grid, shares.push_back(1e9);
    if (!by_grid && by_design) ++only_design, shares.push_back(0);
    neither += !by_grid && !by_design;
  }
  fmt::print(
      "{} to {}: design {:.3g} FLOPs, grid {:.3g} (medians of those decided); median share {:.2f}; "
      "{} worlds, only the design decides {}, only the grid {}, neither {}; of {} intervals at the "
      "design's end {} hold the truth\n",
      goal_name(goal), goal.target, median_of(designs), median_of(grids), median_of(shares),
      grid.size(), only_design, only_grid, neither, designs.size(), held);
}

}  // namespace

void compare_designs(int worlds, int first, const std::string& only, bool rounds) {
  // The target errors of docs/studies.md and twice those.
  const DesignGoal goals[]{{GoalKind::slope, 0.015, 0, 0, 0},
                           {GoalKind::offset, 0.15, 0, 0, 0},
                           {GoalKind::crossing, 0.1, 3, 6, 0},
                           {GoalKind::best_depth, 0.08, 0, 0, 5e6}};
  for (const DesignGoal& goal : goals) {
    if (!goal_name(goal).starts_with(only)) continue;
    const auto count = static_cast<std::size_t>(worlds);
    DesignGoal twice = goal;
    twice.target *= 2;
    // The grid grown to the smaller error passes the larger on its way; a design is made for one.
    std::vector<Curve> grid(count), design(count), design_twice(count);
    for_all(3 * count, [&](std::size_t i) {
      const std::size_t w = i / 3;
      const std::uint64_t draw = static_cast<std::uint64_t>(first) + w;
      const PlantedWorld world = draw_world({}, draw);
      if (i % 3 == 0) design[w] = design_curve(world, goal, draw, rounds);
      if (i % 3 == 1) design_twice[w] = design_curve(world, twice, draw, false);
      if (i % 3 == 2) grid[w] = grid_curve(world, goal, draw, rounds);
    });
    print_share(twice, grid, design_twice);
    print_share(goal, grid, design);
    std::fflush(stdout);
  }
}

}  // namespace fathom::fits
