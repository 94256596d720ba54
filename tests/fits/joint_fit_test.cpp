#include "fits/joint_fit.h"

#include <gtest/gtest.h>

#include "fits/minimise.h"
#include "fits/planted.h"

namespace fathom::fits {
namespace {

constexpr JointForm kWidthDepthTokens{true, true, false, true, false};
constexpr JointForm kInteracting{true, true, false, true, true};

Eigen::VectorXd vector_of(std::initializer_list<double> values) {
  Eigen::VectorXd v(static_cast<Eigen::Index>(values.size()));
  std::copy(values.begin(), values.end(), v.begin());
  return v;
}

/// ln coefficient and exponent of w, L, T; (phi;) ln E.
JointLaw additive_law() {
  return {kWidthDepthTokens, vector_of({std::log(8.0), 0.5, std::log(1.2), 0.7, std::log(300.0),
                                        0.35, std::log(1.7)})};
}
JointLaw interacting_law() {
  return {kInteracting, vector_of({std::log(8.0), 0.5, std::log(1.2), 0.7, std::log(150.0), 0.35,
                                   0.25, std::log(1.7)})};
}

TEST(Minimise, FindsTheValleyOfRosenbrock) {
  const Minimum found = minimise_bfgs(
      [](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
        const double u = 1 - x[0];
        const double v = x[1] - x[0] * x[0];
        gradient.resize(2);
        gradient << -2 * u - 400 * x[0] * v, 200 * v;
        return u * u + 100 * v * v;
      },
      vector_of({-1.2, 1}), 500);
  EXPECT_NEAR(found.x[0], 1, 1e-6);
  EXPECT_NEAR(found.x[1], 1, 1e-6);
}

TEST(JointObjective, GradientMatchesDifferences) {
  const PlantedJoint planted{interacting_law()};
  const auto points = planted.draw(1);
  const JointObjective objective(kInteracting, points);
  const Eigen::VectorXd x = interacting_law().coefficients() * 1.02;
  for (const double delta : {1e-3, 0.1}) {
    Eigen::VectorXd gradient;
    objective.value(x, delta, &gradient);
    for (Eigen::Index k = 0; k < x.size(); ++k) {
      Eigen::VectorXd moved = x;
      const double step = 1e-6;
      moved[k] += step;
      const double above = objective.value(moved, delta);
      moved[k] -= 2 * step;
      const double below = objective.value(moved, delta);
      EXPECT_NEAR(gradient[k], (above - below) / (2 * step), 1e-6 * (1 + std::fabs(gradient[k])));
    }
  }
}

TEST(JointObjective, AgreesWithTheLossOfTheLaw) {
  PlantedJoint planted{interacting_law()};
  planted.noise = 0;
  const auto points = planted.draw(1);
  const JointObjective objective(kInteracting, points);
  EXPECT_LT(objective.residuals(interacting_law().coefficients()).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LT(objective.value(interacting_law().coefficients(), 1e-3), 1e-20);
}

TEST(JointFit, RecoversAPlantedLawWithoutNoise) {
  PlantedJoint planted{additive_law()};
  planted.noise = 0;
  std::string reason;
  JointOptions options;
  options.starts = 30;
  const auto fit = fit_joint(planted.draw(1), kWidthDepthTokens, options, reason);
  ASSERT_TRUE(fit) << reason;
  for (Eigen::Index k = 0; k < fit->coefficients.size(); ++k) {
    EXPECT_NEAR(fit->coefficients[k], additive_law().coefficients()[k], 1e-2) << k;
  }
}

TEST(JointFit, PrefersTheFormThatMadeTheData) {
  std::string reason;
  JointOptions options;
  options.starts = 20;
  for (const bool interacting : {false, true}) {
    const PlantedJoint planted{interacting ? interacting_law() : additive_law()};
    const auto points = planted.draw(4);
    const auto plain = fit_joint(points, kWidthDepthTokens, options, reason);
    const auto crossed = fit_joint(points, kInteracting, options, reason);
    ASSERT_TRUE(plain && crossed);
    // One needless coefficient costs at most 2; a missing one costs more.
    EXPECT_EQ(crossed->aic < plain->aic - 4, interacting);
  }
}

// Loss that rises with depth: the only minima have a negative depth exponent.
TEST(JointFit, RejectsUnphysicalMinima) {
  std::vector<RunPoint> points;
  for (const std::int64_t layers : {2, 4, 8, 16, 32}) {
    for (const std::int64_t width : {64, 128, 256, 512}) {
      const auto L = static_cast<double>(layers);
      const auto D = static_cast<double>(width);
      points.push_back({"", layers, width, 12 * L * D * D, 1e9,
                        1.5 + 8 * std::pow(D, -0.5) + 0.05 * std::pow(L, 0.6), 0});
    }
  }
  std::string reason;
  JointOptions options;
  options.starts = 20;
  const auto fit = fit_joint(points, {true, true, false, false, false}, options, reason);
  if (fit) {
    EXPECT_TRUE(fit->law().physical());
    EXPECT_GT(fit->rejected, 0u);
    EXPECT_GT(fit->mean_error, 0.01);
  } else {
    EXPECT_NE(reason.find("negative exponent"), std::string::npos);
  }
}

// 20 draws with fixed seeds, three exponents each; bench/planted_truth runs more. If 95 % is true,
// fewer than 51 of 60 inside has a probability below 0.2 %.
TEST(JointFit, StatedIntervalsHoldThePlantedTruth) {
  const PlantedJoint planted{additive_law()};
  JointOptions options;
  options.starts = 12;
  std::string reason;
  int held = 0;
  for (std::uint64_t draw = 1; draw <= 20; ++draw) {
    const auto points = planted.draw(draw);
    auto fit = fit_joint(points, kWidthDepthTokens, options, reason);
    ASSERT_TRUE(fit) << reason;
    bootstrap_joint(points, options, 60, *fit);
    for (std::size_t k = 1; k < 6; k += 2) {
      const double truth = planted.law.coefficients()[static_cast<Eigen::Index>(k)];
      held += fit->intervals[k].low <= truth && truth <= fit->intervals[k].high;
    }
  }
  EXPECT_GE(held, 51);
}

TEST(JointFit, HoldsOutTheLargestShapes) {
  const PlantedJoint planted{additive_law()};
  const auto points = planted.draw(2);
  std::string reason;
  JointOptions options;
  options.starts = 20;
  auto fit = fit_joint(points, kWidthDepthTokens, options, reason);
  ASSERT_TRUE(fit);
  HeldOutShapes(points, options, 3, 0).judge(*fit);
  ASSERT_TRUE(fit->holdout_error);
  EXPECT_EQ(fit->holdout_runs, 9u);
  EXPECT_LT(*fit->holdout_error, 0.005);
  EXPECT_GT(*fit->holdout_error, 0.0005);
}

}  // namespace
}  // namespace fathom::fits
