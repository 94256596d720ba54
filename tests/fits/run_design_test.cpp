#include "fits/run_design.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "fits/decompositions.h"
#include "fits/design_plan.h"
#include "fits/planted_world.h"
#include "fits/surface_fit.h"

namespace fathom::fits {
namespace {

double flops(std::int64_t layers, std::int64_t width, const std::vector<double>& lengths) {
  const auto d = static_cast<double>(width);
  return 6 * 12 * static_cast<double>(layers) * d * d * lengths.back();
}

DesignSpec spec_for(std::vector<DesignGoal> goals, double budget) {
  DesignSpec spec;
  spec.goals = std::move(goals);
  spec.limits.depths = {2, 3, 4, 6, 8, 12, 16, 24};
  spec.limits.smallest = 2e5;
  spec.limits.largest = 2e7;
  spec.lengths = [](double) { return std::vector<double>{1e8}; };
  spec.cost = flops;
  spec.budget = budget;
  return spec;
}

void make_runs(const PlantedWorld& world, const DesignStep& step, std::uint64_t draw,
               std::vector<RunPoint>& runs) {
  for (const DesignRun& run : step.batch) {
    for (const double tokens : run.lengths) {
      runs.push_back(world.run(run.layers, run.width, run.seed, tokens, draw));
    }
  }
}

TEST(DesignCandidates, MatchSizesAsCloselyAsHeadsAllow) {
  CandidateLimits limits;
  limits.depths = {2, 3, 6, 12, 24};
  limits.smallest = 2e5;
  limits.largest = 2e7;
  const auto shapes = candidate_shapes(limits);
  std::set<std::int64_t> depths;
  for (const CandidateShape& shape : shapes) {
    depths.insert(shape.layers);
    EXPECT_EQ(shape.width % 16, 0);
    EXPECT_GE(shape.width, 64);
    EXPECT_EQ(shape.params, 12.0 * static_cast<double>(shape.layers * shape.width * shape.width));
    EXPECT_LE(shape.params, 1.05 * limits.largest);
  }
  EXPECT_EQ(depths.size(), 5u);
  // From a million on every depth has a width within the tolerance of every size.
  int large = 0;
  for (const CandidateShape& shape : shapes) large += shape.params > 4e6;
  EXPECT_GE(large, 4 * 5);
  limits.largest = 1e4;
  limits.smallest = 9e3;
  EXPECT_TRUE(candidate_shapes(limits).empty());
}

// The linearised surface against the posterior: conditioning on runs that were made must give the
// covariance of a least-squares fit with the same priors.
TEST(LinearisedSurface, ConditioningIsBayes) {
  const SurfaceColumns columns({{12, 17}, {0.7, 3}, {0, 0}, 1});
  SurfaceScales scales;
  scales.log_noise = -6;
  scales.log_depths = Eigen::VectorXd::Zero(3);
  scales.log_shape = -0.7;
  scales.log_bend = -5;
  scales.log_misfit = -0.5;
  const DepthSurface surface(LawForm::power, 14.5, false);
  const auto prior = surface.prior(1.4);
  std::vector<SurfaceSite> sites;
  for (const int layers : {2, 6, 16}) {
    for (const double x : {12.5, 14.0, 16.0}) {
      sites.push_back(
          {layers, std::llround(10 * x), {x, std::log(static_cast<double>(layers)), 0}});
    }
  }
  const Eigen::Index own = surface.size();
  Eigen::MatrixXd goals = Eigen::MatrixXd::Zero(1, own + columns.size());
  goals(0, 1) = 1;
  LinearisedSurface state(columns, scales, surface, prior.mean, prior, goals, sites);
  // The same by the information form.
  Eigen::MatrixXd rows(static_cast<Eigen::Index>(sites.size()), own + columns.size());
  Eigen::RowVectorXd gradient(own);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    surface.penalty(prior.mean, sites[i].place, gradient);
    rows.row(static_cast<Eigen::Index>(i)) << gradient, columns.at(sites[i].place);
  }
  Eigen::VectorXd variances(own + columns.size());
  variances.head(own) = prior.deviation.array().square();
  variances.tail(columns.size()) = columns.deviations(scales).array().square();
  variances.segment(own, columns.fixed()).setConstant(4);
  const double noise = std::exp(2 * scales.log_noise);
  const double shape = std::pow(scales.shape_deviation(), 2);
  EXPECT_NEAR(state.goal_variance(0), variances[1], 1e-12);
  Eigen::MatrixXd information = variances.cwiseInverse().asDiagonal();
  const Eigen::MatrixXd one = Eigen::MatrixXd::Constant(1, 1, noise);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const auto row = rows.row(static_cast<Eigen::Index>(i));
    // Two runs of the shape: its own departure stays.
    information += row.transpose() * row / (shape + noise / 2);
    const std::size_t place[]{i};
    state.observe(place, one);
    const double predicted = state.expected_variance(0, place, one);
    state.observe(place, one);
    EXPECT_NEAR(state.goal_variance(0), predicted, 1e-9);
  }
  EXPECT_NEAR(state.goal_variance(0), pseudo_inverse(information)(1, 1), 1e-6);
}

TEST(LinearisedMixture, ErrorIsHalfTheIntervalOfTheMixture) {
  const Eigen::ArrayXd one = Eigen::ArrayXd::Constant(1, 1);
  EXPECT_NEAR(mixture_error(one, Eigen::ArrayXd::Constant(1, 0.3), 1), 0.3, 1e-6);
  Eigen::ArrayXd weights(2);
  Eigen::ArrayXd deviations(2);
  weights << 0.8, 0.2;
  deviations << 1, 4;
  for (const double start : {0.0, 1.0, 3.0, 100.0}) {
    const double e = mixture_error(weights, deviations, start);
    const double outside = 0.8 * std::erfc(1.959964 * e / std::sqrt(2.0)) +
                           0.2 * std::erfc(1.959964 * e / 4 / std::sqrt(2.0));
    EXPECT_NEAR(outside, 0.05, 1e-9);
  }
}

/// One site and one goal, whose prior variance is the site's own: a surface by hand.
LinearisedSurface surface_with(double log_misfit) {
  const SurfaceColumns columns({{12, 17}, {0.7, 3}, {0, 0}, 1});
  SurfaceScales scales;
  scales.log_noise = -6;
  scales.log_depths = Eigen::VectorXd::Zero(1);
  scales.log_shape = -0.7;
  scales.log_bend = -5;
  scales.log_misfit = log_misfit;
  const DepthSurface surface(LawForm::power, 14.5, false);
  const auto prior = surface.prior(1.4);
  const std::vector<SurfaceSite> sites{{6, 144, {14.5, std::log(6.0), 0}}};
  Eigen::MatrixXd goals = Eigen::MatrixXd::Zero(1, surface.size() + columns.size());
  goals.rightCols(columns.size()) = columns.at(sites[0].place);
  return {columns, scales, surface, prior.mean, prior, goals, sites};
}

// Two sizes of misfit: runs lower both variances and tell the two apart.
TEST(LinearisedMixture, PredictsWhatRunsSayAboutTheMisfit) {
  const double noise = std::exp(-12);
  const Observation observation{
      {0}, {Eigen::MatrixXd::Constant(1, 1, noise), Eigen::MatrixXd::Constant(1, 1, noise)}};
  std::vector<LinearisedSurface> surfaces{surface_with(-4), surface_with(8)};
  const double weights[]{0.7, 0.3};
  Eigen::ArrayXd after(2);
  double seen[2];
  for (std::size_t k = 0; k < 2; ++k) {
    after[static_cast<Eigen::Index>(k)] =
        std::sqrt(surfaces[k].expected_variance(0, observation.sites, observation.noises[k]));
    seen[k] = surfaces[k].predictive_covariance(observation.sites, observation.noises[k])(0, 0);
  }
  double expected = 0;
  for (const int j : {0, 1}) {
    const double ratio = seen[j] / seen[1 - j];
    const double divergence = (ratio - 1 - std::log(ratio)) / 2;
    EXPECT_GT(divergence, 0.01);
    const double other = weights[1 - j] * std::exp(-divergence);
    Eigen::ArrayXd odds(2);
    odds[j] = weights[j] / (weights[j] + other);
    odds[1 - j] = other / (weights[j] + other);
    expected += weights[j] * std::log(mixture_error(odds, after, 1));
  }
  LinearisedMixture mixture(surfaces, {weights[0], weights[1]});
  const Eigen::Index goal[]{0};
  EXPECT_NEAR(mixture.expected_errors(goal, observation).front() / std::exp(expected), 1, 1e-9);
  mixture.observe(observation);
  EXPECT_NEAR(mixture.error(0) / std::exp(expected), 1, 1e-9);
}

TEST(DesignPlan, PruningLeavesOutWhatIsNotNeeded) {
  PlantedWorld world;
  world.shapes = gpu_study();
  std::string reason;
  const auto posterior = SurfacePosterior::fit(world.draw(1), {}, reason);
  ASSERT_TRUE(posterior) << reason;
  const SurfaceDraws draws(*posterior, 100, 1);
  DesignGoal goal{GoalKind::slope, 1};
  goal.target = measure_goal(*posterior, draws, goal).error / 1.3;
  const std::vector states{measure_goal(*posterior, draws, goal)};
  const DesignSpec spec = spec_for({goal}, 1e18);
  std::vector<Candidate> candidates;
  for (const CandidateShape& shape : candidate_shapes(spec.limits)) {
    candidates.push_back({shape, {1e8}, flops(shape.layers, shape.width, {1e8}), {}});
  }
  const GoalForecast forecast = GoalForecast::cautious(*posterior, candidates, states);
  const std::vector<Choice> choices = list_choices(candidates);
  const auto decided_with = [&](const DesignPlan& plan) {
    std::vector<const Candidate*> run;
    std::vector<double> times;
    for (const PlanItem& item : plan.items) {
      if (item.times < 1) continue;
      run.push_back(item.candidate);
      times.push_back(item.times);
    }
    return forecast.decided_with(run, times);
  };
  EXPECT_FALSE(forecast.all_decided());
  const auto greedy = greedy_plan(forecast, choices, 1e17, 1e20);
  const auto pruned = plan_ahead(forecast, choices, 1e17, 1e20);
  ASSERT_TRUE(greedy && pruned);
  EXPECT_TRUE(decided_with(*greedy));
  EXPECT_TRUE(decided_with(*pruned));
  EXPECT_LT(pruned->cost(), greedy->cost());
  EXPECT_FALSE(decided_with({}));
  EXPECT_FALSE(plan_ahead(forecast, choices, 1e17, greedy->cost() / 10));
  for (const PlanItem& item : pruned->items) {
    const auto same = [&](const PlanItem& other) { return other.candidate == item.candidate; };
    const auto before = std::find_if(greedy->items.begin(), greedy->items.end(), same);
    ASSERT_NE(before, greedy->items.end());
    EXPECT_LE(item.times, before->times);
  }
}

TEST(RunDesign, FirstRoundSpreadsOverSizesAndDepths) {
  const DesignStep step = next_batch({}, spec_for({{GoalKind::slope, 0.01}}, 1e18));
  EXPECT_EQ(step.stage, DesignStage::first_round);
  std::set<std::int64_t> depths;
  double least = 1e300;
  double most = 0;
  for (const DesignRun& run : step.batch) {
    depths.insert(run.layers);
    EXPECT_EQ(run.seed, 1u);
    least = std::min(least, run.cost);
    most = std::max(most, run.cost);
  }
  EXPECT_GE(step.batch.size(), 14u);
  EXPECT_GE(depths.size(), 6u);
  EXPECT_GT(most / least, 10);
  EXPECT_LE(step.batch_cost, 0.03 * 1e18);
}

// The same records give the same batch, in whatever order they come.
TEST(RunDesign, DependsOnTheRecordsAlone) {
  PlantedWorld world;
  const DesignSpec spec =
      spec_for({{GoalKind::slope, 0.02}, {GoalKind::crossing, 0.1, 3, 6, 0}}, 4e17);
  std::vector<RunPoint> runs;
  make_runs(world, next_batch(runs, spec), 1, runs);
  const DesignStep first = next_batch(runs, spec);
  std::reverse(runs.begin(), runs.end());
  const DesignStep second = next_batch(runs, spec);
  ASSERT_EQ(first.batch.size(), second.batch.size());
  ASSERT_FALSE(first.batch.empty());
  for (std::size_t i = 0; i < first.batch.size(); ++i) {
    EXPECT_EQ(first.batch[i].layers, second.batch[i].layers);
    EXPECT_EQ(first.batch[i].width, second.batch[i].width);
    EXPECT_EQ(first.batch[i].seed, second.batch[i].seed);
  }
}

TEST(RunDesign, DecidesWhatIsWantedAndHoldsTheTruth) {
  PlantedWorld world;
  int decided = 0;
  int held = 0;
  for (std::uint64_t draw = 1; draw <= 4; ++draw) {
    const DesignSpec spec = spec_for({{GoalKind::crossing, 0.12, 3, 6, 0}}, 3e17);
    std::vector<RunPoint> runs;
    DesignStep step;
    for (int round = 0; round < 20; ++round) {
      step = next_batch(runs, spec);
      if (step.batch.empty()) break;
      EXPECT_LE(step.spent + step.batch_cost, spec.budget * (1 + 1e-9));
      make_runs(world, step, draw, runs);
    }
    decided += step.stage == DesignStage::decided;
    const double truth = std::exp(world.true_crossing(3, 6, std::log(2e5), std::log(2e7), draw));
    const GoalState& goal = step.goals.front();
    held += goal.low && goal.high && *goal.low <= truth && truth <= *goal.high;
    EXPECT_LE(step.spent, spec.budget);
  }
  EXPECT_GE(decided, 3);
  EXPECT_GE(held, 3);
}

// Close to its end a design must not pay for more than is missing.
TEST(RunDesign, GainsNothingBeyondTheWantedError) {
  PlantedWorld world;
  world.shapes = gpu_study();
  std::string reason;
  const auto posterior = SurfacePosterior::fit(world.draw(1), {}, reason);
  ASSERT_TRUE(posterior) << reason;
  const SurfaceDraws draws(*posterior, 100, 1);
  std::vector<Candidate> candidates{{{24, 256, 12.0 * 24 * 256 * 256}, {1e8}, 1, {}}};
  const Candidate* large[]{&candidates.front()};
  const auto gain = [&](double need) {
    DesignGoal goal{GoalKind::slope, 1};
    goal.target = measure_goal(*posterior, draws, goal).error / need;
    const std::vector states{measure_goal(*posterior, draws, goal)};
    return GoalForecast::cautious(*posterior, candidates, states).gain(large);
  };
  const double whole = gain(10);
  EXPECT_GT(whole, 0.03);
  EXPECT_NEAR(gain(1.002), 2 * std::log(1.01 * 1.002), 1e-9);
  EXPECT_EQ(gain(0.9), 0);
}

TEST(RunDesign, NewRunsAreNewSeedsOrShapes) {
  PlantedWorld world;
  const DesignSpec spec = spec_for({{GoalKind::slope, 0.003}}, 1e18);
  std::vector<RunPoint> runs;
  for (int round = 0; round < 4; ++round) make_runs(world, next_batch(runs, spec), 3, runs);
  std::set<std::tuple<std::int64_t, std::int64_t, std::uint64_t>> seen;
  for (const RunPoint& run : runs) {
    EXPECT_TRUE(seen.emplace(run.layers, run.width, run.seed).second);
  }
}

// 24 over 16 lies far above the sizes allowed: a bound and a price, not more runs.
TEST(RunDesign, SaysWhenTheAnswerLiesBeyondTheLimits) {
  PlantedWorld world;
  world.b = 0.3;
  DesignSpec spec = spec_for({{GoalKind::crossing, 0.1, 16, 24, 0}}, 4e17);
  spec.limits.largest = 6e6;
  world.shapes = planted_ladder(spec.limits.depths, {3e5, 8e5, 2e6, 6e6}, [](double) { return 2; });
  const std::vector<RunPoint> runs = world.draw(2);
  const DesignStep step = next_batch(runs, spec);
  EXPECT_EQ(step.stage, DesignStage::out_of_reach);
  EXPECT_TRUE(step.batch.empty());
  ASSERT_TRUE(step.goals.front().low);
  EXPECT_FALSE(step.goals.front().high);
  EXPECT_GT(*step.goals.front().low, 1e6);
}

// Runs that fit no surface: all the weight lies on one draw, whose interval has no length. That
// must not pass for knowledge.
TEST(RunDesign, AnIntervalOfOneDrawDecidesNothing) {
  const std::vector<std::tuple<int, int, double, double>> found{
      {3, 48, 84912, 0.6898}, {1, 80, 78000, 0.6397}, {6, 32, 76288, 0.8981},
      {2, 48, 56640, 0.7080}, {1, 64, 50112, 0.6263}, {4, 32, 50880, 0.9232},
      {3, 32, 38176, 0.9138}, {1, 48, 28368, 0.7534}, {2, 32, 25472, 1.0375},
      {6, 16, 19712, 1.9945}, {1, 32, 12768, 1.1549}, {4, 16, 13152, 1.9638},
      {2, 16, 6592, 2.0142},  {1, 16, 3312, 2.0787}};
  std::vector<RunPoint> runs;
  for (const auto& [layers, width, params, loss] : found) {
    runs.push_back({"", layers, width, params, 20480, loss, 1});
  }
  DesignSpec spec = spec_for({{GoalKind::slope, 1e-6}, {GoalKind::offset, 1e-6}}, 1e18);
  spec.limits.depths = {1, 2, 3, 4, 6};
  spec.limits.smallest = 3e3;
  spec.limits.largest = 2e5;
  spec.limits.least_width = 16;
  const DesignStep step = next_batch(runs, spec);
  for (const GoalState& goal : step.goals) EXPECT_FALSE(goal.decided);
  EXPECT_FALSE(step.batch.empty());
}

TEST(RunDesign, LengthsAreTrainedTogether) {
  PlantedWorld world;
  world.tokens = {5e7, 1e8};
  DesignSpec spec = spec_for({{GoalKind::slope, 0.02}}, 4e17);
  spec.lengths = [](double) { return std::vector<double>{5e7, 1e8}; };
  std::vector<RunPoint> runs;
  make_runs(world, next_batch(runs, spec), 1, runs);
  const DesignStep step = next_batch(runs, spec);
  ASSERT_FALSE(step.batch.empty());
  for (const DesignRun& run : step.batch) EXPECT_EQ(run.lengths.size(), 2u);
  EXPECT_LT(step.goals.front().expected, step.goals.front().error);
}

TEST(RunDesign, RefusesContradictions) {
  EXPECT_THROW(next_batch({}, spec_for({}, 1e18)), ConfigError);
  EXPECT_THROW(next_batch({}, spec_for({{GoalKind::slope, 0.01}}, 0)), ConfigError);
  EXPECT_THROW(next_batch({}, spec_for({{GoalKind::slope, 0}}, 1e18)), ConfigError);
  EXPECT_THROW(next_batch({}, spec_for({{GoalKind::crossing, 0.1, 3, 5, 0}}, 1e18)), ConfigError);
  EXPECT_THROW(next_batch({}, spec_for({{GoalKind::crossing, 0.1, 6, 3, 0}}, 1e18)), ConfigError);
  EXPECT_THROW(next_batch({}, spec_for({{GoalKind::best_depth, 0.1, 0, 0, 1e9}}, 1e18)),
               ConfigError);
  DesignSpec narrow = spec_for({{GoalKind::slope, 0.01}}, 1e18);
  narrow.limits.least_width = 5000;
  EXPECT_THROW(next_batch({}, narrow), ConfigError);
}

}  // namespace
}  // namespace fathom::fits
