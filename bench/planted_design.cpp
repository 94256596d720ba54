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

/// What is known after how much: FLOPs and the goal's error, round by round.
struct Round {
  double cost = 0;
  double error = 0;
};
using Curve = std::vector<Round>;

void add_round(const char* kind, const DesignGoal& goal, std::uint64_t draw, Round round,
               bool print, Curve& curve) {
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
    // A goal measured, nothing chosen: a budget that is spent.
    const DesignStep step = next_batch(runs, spec_for(goal, cost));
    add_round("grid", goal, draw, {cost, step.goals.front().error}, print, curve);
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
      add_round("design", goal, draw, {step.spent, step.goals.front().error}, print, curve);
    }
    if (step.batch.empty()) break;
    for (const DesignRun& run : step.batch) {
      runs.push_back(world.run(run.layers, run.width, run.seed, kTokens, draw));
    }
  }
  return curve;
}

/// FLOPs until the error is the wanted one. A single goal's choices do not depend on how small an
/// error is wanted, so one curve serves all of them.
std::optional<double> cost_until(const Curve& curve, double wanted) {
  for (const Round& round : curve) {
    if (round.error <= wanted) return round.cost;
  }
  return std::nullopt;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return NAN;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// One wanted error over all worlds.
void print_share(const DesignGoal& goal, double wanted, const std::vector<Curve>& grid,
                 const std::vector<Curve>& design) {
  std::vector<double> shares, grids, designs;
  int only_design = 0, only_grid = 0, neither = 0;
  for (std::size_t w = 0; w < grid.size(); ++w) {
    const auto by_grid = cost_until(grid[w], wanted);
    const auto by_design = cost_until(design[w], wanted);
    if (by_grid) grids.push_back(*by_grid);
    if (by_design) designs.push_back(*by_design);
    // Undecided counts as more than anything decided, on either side.
    if (by_grid && by_design) shares.push_back(*by_design / *by_grid);
    if (by_grid && !by_design) ++only_grid, shares.push_back(1e9);
    if (!by_grid && by_design) ++only_design, shares.push_back(0);
    neither += !by_grid && !by_design;
  }
  fmt::print(
      "{} to {}: design {:.3g} FLOPs, grid {:.3g} (medians of those decided); median share {:.2f}; "
      "{} worlds, only the design decides {}, only the grid {}, neither {}\n",
      goal_name(goal), wanted, median_of(designs), median_of(grids), median_of(shares), grid.size(),
      only_design, only_grid, neither);
}

}  // namespace

void compare_designs(int worlds, int first, bool rounds) {
  // The wanted errors of docs/studies.md and twice as much.
  const DesignGoal goals[]{{GoalKind::slope, 0.015, 0, 0, 0},
                           {GoalKind::offset, 0.15, 0, 0, 0},
                           {GoalKind::crossing, 0.1, 3, 6, 0},
                           {GoalKind::best_depth, 0.08, 0, 0, 5e6}};
  for (const DesignGoal& goal : goals) {
    std::vector<Curve> grid, design;
    for (int draw = first; draw < first + worlds; ++draw) {
      const auto stream = static_cast<std::uint64_t>(draw);
      const PlantedWorld world = draw_world({}, stream);
      grid.push_back(grid_curve(world, goal, stream, rounds));
      design.push_back(design_curve(world, goal, stream, rounds));
    }
    for (const double times : {2.0, 1.0}) print_share(goal, times * goal.wanted, grid, design);
    std::fflush(stdout);
  }
}

}  // namespace fathom::fits
