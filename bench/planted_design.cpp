// A design against the `levine` grid grown evenly, on planted worlds: FLOPs until the goal's error
// is the wanted one. Both are judged by the same surface; only the choice of runs differs.
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
constexpr double kBudget = kMostSeeds * 9.4e16;  // of a design: as many grids
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
  spec.lengths = [](double) { return std::vector<double>{kTokens}; };
  spec.cost = [](std::int64_t layers, std::int64_t width, const std::vector<double>&) {
    return flops(layers, width);
  };
  spec.budget = budget;
  return spec;
}

/// The grid of examples/studies/levine.toml with 1, 2, 3, ... seeds of every shape.
std::optional<double> grid_cost(const PlantedWorld& world, const DesignGoal& goal,
                                std::uint64_t draw, bool rounds) {
  const auto shapes = planted_ladder(
      {2, 3, 6, 12, 24}, {2e5, 5e5, 1.2e6, 3e6, 7.5e6, 19e6}, [](double) { return 1; }, 32);
  std::vector<RunPoint> runs;
  double cost = 0;
  for (int seed = 1; seed <= kMostSeeds; ++seed) {
    for (const PlannedShape& shape : shapes) {
      runs.push_back(
          world.run(shape.layers, shape.width, static_cast<std::uint64_t>(seed), kTokens, draw));
      cost += flops(shape.layers, shape.width);
    }
    // A goal measured, nothing chosen: a budget that is spent.
    const DesignStep step = next_batch(runs, spec_for(goal, cost));
    const GoalState& state = step.goals.front();
    if (rounds) fmt::print("grid,{},{},{:.4g},{:.4g}\n", goal_name(goal), draw, cost, state.error);
    if (state.decided) return cost;
  }
  return std::nullopt;
}

std::optional<double> design_cost(const PlantedWorld& world, const DesignGoal& goal,
                                  std::uint64_t draw, double budget, bool rounds) {
  const DesignSpec spec = spec_for(goal, budget);
  std::vector<RunPoint> runs;
  for (int round = 0; round < kMostRounds; ++round) {
    const DesignStep step = next_batch(runs, spec);
    if (rounds && !runs.empty()) {
      fmt::print("design,{},{},{:.4g},{:.4g}\n", goal_name(goal), draw, step.spent,
                 step.goals.front().error);
    }
    if (step.stage == DesignStage::decided) return step.spent;
    if (step.batch.empty()) return std::nullopt;
    for (const DesignRun& run : step.batch) {
      runs.push_back(world.run(run.layers, run.width, run.seed, kTokens, draw));
    }
  }
  return std::nullopt;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return NAN;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

void compare_designs(int worlds, int first, bool rounds) {
  // What the grid reaches with about four seeds.
  const DesignGoal goals[]{{GoalKind::slope, 0.01, 0, 0, 0},
                           {GoalKind::offset, 0.06, 0, 0, 0},
                           {GoalKind::crossing, 0.1, 3, 6, 0},
                           {GoalKind::best_depth, 0.06, 0, 0, 5e6}};
  for (const DesignGoal& goal : goals) {
    std::vector<double> shares, grids, designs;
    int only_design = 0, only_grid = 0, neither = 0;
    for (int draw = first; draw < first + worlds; ++draw) {
      const auto stream = static_cast<std::uint64_t>(draw);
      const PlantedWorld world = draw_world({}, stream);
      const auto grid = grid_cost(world, goal, stream, rounds);
      const auto design = design_cost(world, goal, stream, kBudget, rounds);
      if (grid) grids.push_back(*grid);
      if (design) designs.push_back(*design);
      // Undecided counts as more than anything decided, on either side.
      if (grid && design) shares.push_back(*design / *grid);
      if (grid && !design) ++only_grid, shares.push_back(1e9);
      if (!grid && design) ++only_design, shares.push_back(0);
      neither += !grid && !design;
    }
    fmt::print(
        "{} to {}: design {:.3g} FLOPs, grid {:.3g} (medians of those decided); median share "
        "{:.2f}; "
        "{} worlds, only the design decides {}, only the grid {}, neither {}\n",
        goal_name(goal), goal.wanted, median_of(designs), median_of(grids), median_of(shares),
        worlds, only_design, only_grid, neither);
    std::fflush(stdout);
  }
}

}  // namespace fathom::fits
