#include "fits/surface_likelihood.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "fits/adaptive_sampling.h"
#include "fits/planted_world.h"
#include "fits/surface_scales.h"

namespace fathom::fits {
namespace {

PlantedWorld small_world(bool lengths) {
  PlantedWorld world;
  world.shapes = {{2, 64, 2},  {2, 128, 1}, {2, 256, 3}, {4, 48, 1},  {4, 96, 2},
                  {4, 176, 1}, {8, 32, 2},  {8, 64, 1},  {8, 128, 1}, {8, 192, 2}};
  if (lengths) world.tokens = {3e7, 1e8};
  return world;
}

SurfaceScales some_scales(const SurfaceLikelihood& likelihood) {
  SurfaceScales scales = first_scales(likelihood, std::log(0.6));
  scales.log_depths << 0.2, -0.3, 0.4;
  scales.log_shape = -0.5;
  scales.noise_by_size = -0.2;
  scales.noise_by_length = 0.5;
  scales.length_logit = 0.4;
  return scales;
}

TEST(SurfaceData, FoldsRepeatsIntoMeansAndScatters) {
  const SurfaceData data = fold_runs(small_world(false).draw(1));
  EXPECT_EQ(data.runs, 16u);
  EXPECT_EQ(data.shapes.size(), 10u);
  EXPECT_EQ(data.rows.size(), 10u);
  EXPECT_FALSE(data.length_rule.differs);
  EXPECT_NEAR(data.block_coefficient, 12, 1e-9);
  const RepeatUnit& three = data.shapes[2].units.front();
  EXPECT_EQ(three.repeats, 3);
  ASSERT_EQ(three.scatter.size(), 1);
  EXPECT_GT(three.scatter(0, 0), 0);
}

TEST(SurfaceData, LengthsCountFromTheLongest) {
  const SurfaceData data = fold_runs(small_world(true).draw(1));
  EXPECT_TRUE(data.length_rule.differs);
  EXPECT_NEAR(data.length.high, 0, 1e-9);
  EXPECT_NEAR(data.length.low, std::log(0.3), 1e-9);
  EXPECT_EQ(data.rows.size(), 20u);
  EXPECT_EQ(data.shapes[2].units.front().lengths, 2);
}

TEST(SurfaceData, AShapeNotTrainedToTheEndDoesNotMoveTheLongest) {
  std::vector<RunPoint> runs = small_world(true).draw(1);
  std::erase_if(runs, [](const RunPoint& run) {
    return run.layers == 8 && run.width == 128 && run.tokens > 5e7;  // of the size of 2x256, 4x176
  });
  const SurfaceData data = fold_runs(runs);
  EXPECT_NEAR(data.length.high, 0, 1e-9);
  EXPECT_NEAR(data.length.low, std::log(0.3), 1e-9);
}

/// ln density of the single runs, all covariances written out: shape, trajectory, noise, bend,
/// misfit and a wide normal for the fixed coefficients.
double dense_log_likelihood(const SurfaceLikelihood& likelihood, const std::vector<RunPoint>& runs,
                            const SurfaceScales& scales, const DepthSurface& surface,
                            const Eigen::VectorXd& parameters) {
  const SurfaceData& data = likelihood.data();
  const auto count = static_cast<Eigen::Index>(runs.size());
  Eigen::MatrixXd columns(count, likelihood.coefficients());
  Eigen::VectorXd off(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const RunPoint& run = runs[static_cast<std::size_t>(i)];
    const SurfacePlace place{std::log(run.params), std::log(static_cast<double>(run.layers)),
                             data.length_rule.of(std::log(run.params), run.tokens)};
    columns.row(i) = likelihood.columns().at(place);
    off[i] = std::log(run.loss) - surface.penalty(parameters, place);
  }
  Eigen::VectorXd variances = likelihood.columns().deviations(scales).array().square();
  variances.head(likelihood.columns().fixed()).setConstant(1e4);
  Eigen::MatrixXd covariance = columns * variances.asDiagonal() * columns.transpose();
  const double shared = data.length_rule.differs ? scales.length_correlation() : 0;
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j) {
      const RunPoint& a = runs[static_cast<std::size_t>(i)];
      const RunPoint& b = runs[static_cast<std::size_t>(j)];
      if (a.layers != b.layers || a.width != b.width) continue;
      covariance(i, j) += std::pow(scales.shape_deviation(), 2);
      const auto depth = static_cast<std::size_t>(
          std::find(data.depths.begin(), data.depths.end(), a.layers) - data.depths.begin());
      const auto deviation = [&](const RunPoint& run) {
        const double x = std::log(run.params);
        return scales.noise(depth, x - data.centre(), data.length_rule.of(x, run.tokens));
      };
      const double noise = deviation(a) * deviation(b);
      if (a.seed == b.seed) covariance(i, j) += shared * noise;
      if (i == j) covariance(i, j) += (1 - shared) * noise;
    }
  }
  const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
  const double log_determinant = 2 * factor.matrixLLT().diagonal().array().log().sum();
  return -(log_determinant + off.dot(factor.solve(off))) / 2;
}

// Folding, whitening and low rank against the definition: differences between scales and between
// surfaces must agree (constants of the flat prior and of the repeats' number drop out).
TEST(SurfaceLikelihood, EqualsTheDenseNormalDensity) {
  for (const bool lengths : {false, true}) {
    const std::vector<RunPoint> runs = small_world(lengths).draw(3);
    const SurfaceLikelihood likelihood(fold_runs(runs));
    const DepthSurface surface(LawForm::power, likelihood.data().centre(), lengths);
    Eigen::VectorXd parameters = surface.prior(1.2).mean;
    SurfaceScales scales = some_scales(likelihood);
    const auto folded = [&] {
      const auto prepared = likelihood.prepare(scales);
      Eigen::MatrixXd residual = likelihood.means() - likelihood.penalties(surface, parameters);
      likelihood.whiten(prepared, residual);
      return prepared.repeats -
             (prepared.log_determinants + SurfaceLikelihood::quadratic(prepared, residual)) / 2;
    };
    const auto dense = [&] {
      return dense_log_likelihood(likelihood, runs, scales, surface, parameters);
    };
    const double gap = folded() - dense();
    parameters[0] += 0.5;
    EXPECT_NEAR(folded() - dense(), gap, 1e-3);
    scales.log_noise += 0.3;
    scales.log_depths[1] += 0.4;
    EXPECT_NEAR(folded() - dense(), gap, 1e-3);
    scales.log_shape += 0.7;
    scales.log_bend -= 0.8;
    scales.log_misfit += 0.9;
    scales.length_logit += 0.6;
    scales.noise_by_size += 0.3;
    scales.noise_by_length -= 0.9;
    EXPECT_NEAR(folded() - dense(), gap, 1e-3);
  }
}

TEST(SurfaceScales, GradientIsThatOfTheObjective) {
  for (const bool lengths : {false, true}) {
    const SurfaceLikelihood likelihood(fold_runs(small_world(lengths).draw(2)));
    const DepthSurface surface(LawForm::free, likelihood.data().centre(), lengths);
    const auto prior = surface.prior(1.2);
    const LinearSurface linear = linearise(likelihood, surface, prior.mean, prior);
    const SurfaceScales scales = some_scales(likelihood);
    Eigen::VectorXd gradient;
    scales_objective(likelihood, linear, scales, gradient);
    const auto slope = [&](auto&& change) {
      Eigen::VectorXd unused;
      SurfaceScales up = scales;
      SurfaceScales down = scales;
      change(up, 1e-4);  // less drowns in rounding
      change(down, -1e-4);
      return (scales_objective(likelihood, linear, up, unused) -
              scales_objective(likelihood, linear, down, unused)) /
             2e-4;
    };
    EXPECT_NEAR(gradient[0], slope([](auto& s, double h) { s.log_noise += h; }), 1e-4);
    for (Eigen::Index k = 0; k < 3; ++k) {
      EXPECT_NEAR(gradient[1 + k], slope([&](auto& s, double h) { s.log_depths[k] += h; }), 1e-4);
    }
    EXPECT_NEAR(gradient[4], slope([](auto& s, double h) { s.log_shape += h; }), 1e-4);
    EXPECT_NEAR(gradient[5], slope([](auto& s, double h) { s.log_bend += h; }), 1e-4);
    EXPECT_NEAR(gradient[6], slope([](auto& s, double h) { s.noise_by_size += h; }), 1e-4);
    if (!lengths) continue;
    EXPECT_NEAR(gradient[7], slope([](auto& s, double h) { s.noise_by_length += h; }), 1e-4);
    EXPECT_NEAR(gradient[8], slope([](auto& s, double h) { s.length_logit += h; }), 1e-4);
  }
}

// Noise that falls with size and training length is seen as such.
TEST(SurfaceScales, FollowsNoiseThatFallsWithSizeAndLength) {
  PlantedWorld world = small_world(true);
  for (PlannedShape& shape : world.shapes) shape.seeds = 6;
  world.noise_length_slope = 0.8;
  world.noise_size_slope = 0.3;
  const SurfaceLikelihood likelihood(fold_runs(world.draw(5)));
  const DepthSurface surface(LawForm::free, likelihood.data().centre(), true);
  const auto prior = surface.prior(1.2);
  const SurfaceScales scales =
      fit_scales(likelihood, linearise(likelihood, surface, prior.mean, prior),
                 first_scales(likelihood, std::log(0.6)));
  EXPECT_NEAR(scales.noise_by_length, -0.8, 0.25);
  EXPECT_NEAR(scales.noise_by_size, -0.3, 0.2);
}

// A bent density (x normal, y normal about x^2) whose integral and moments are known.
TEST(AdaptiveSampling, FindsABentDensity) {
  const std::vector<SampledMode> modes{
      {Eigen::Vector2d::Zero(), Eigen::Matrix2d(Eigen::Vector2d(1, 4).asDiagonal()), 0.3, {}},
      {Eigen::Vector2d::Zero(), Eigen::Matrix2d(Eigen::Vector2d(1, 4).asDiagonal()), 0.7, {}}};
  const auto log_density = [](std::size_t, const Eigen::VectorXd& p) {
    const double off = p[1] - 0.7 * p[0] * p[0];
    return -p[0] * p[0] / 2 - 4 * off * off / 2;
  };
  const WeightedDraws sample = sample_modes(modes, log_density, 4000, 1, 1);
  double mean_y = 0;
  double square_x = 0;
  double total = 0;
  for (const WeightedDraw& draw : sample.draws) {
    total += draw.weight;
    mean_y += draw.weight * draw.point[1];
    square_x += draw.weight * draw.point[0] * draw.point[0];
  }
  EXPECT_NEAR(total, 1, 1e-12);
  EXPECT_NEAR(sample.log_correction, 0, 0.05);  // a shear keeps the volume
  EXPECT_NEAR(mean_y, 0.7, 0.08);
  EXPECT_NEAR(square_x, 1, 0.1);
  EXPECT_GT(sample.effective, 1200);
}

// The same, so bent that a normal proposal misses it, with its crest.
TEST(AdaptiveSampling, FollowsACrest) {
  std::vector<Eigen::VectorXd> bends;
  for (const double knot : {-3, -2, -1, 0, 1, 2, 3}) {
    bends.push_back(Eigen::Vector2d(0, 20 * knot * knot));
  }
  const std::vector<SampledMode> modes{{Eigen::Vector2d::Zero(),
                                        Eigen::Matrix2d(Eigen::Vector2d(1, 4).asDiagonal()), 1,
                                        Crest(0, 1, bends)}};
  const auto log_density = [](std::size_t, const Eigen::VectorXd& p) {
    const double off = p[1] - 20 * p[0] * p[0];
    return -p[0] * p[0] / 2 - 4 * off * off / 2;
  };
  const WeightedDraws sample = sample_modes(modes, log_density, 2000, 1, 1);
  double mean_y = 0;
  for (const WeightedDraw& draw : sample.draws) mean_y += draw.weight * draw.point[1];
  EXPECT_NEAR(mean_y, 20, 2);
  EXPECT_NEAR(sample.log_correction, 0, 0.05);
  EXPECT_GT(sample.effective, 2000);
}

TEST(Crest, PassesThroughItsKnotsAndGoesOnStraight) {
  const auto bend = [](double offset) {
    const Crest crest(1, 0.5,
                      {Eigen::Vector2d(4, 0), Eigen::Vector2d(0, 0), Eigen::Vector2d(2, 0)});
    Eigen::VectorXd off = Eigen::Vector2d(10, offset);
    crest.bend(off);
    EXPECT_EQ(off[1], offset);
    return off[0] - 10;
  };
  EXPECT_NEAR(bend(-0.5), 4, 1e-12);
  EXPECT_NEAR(bend(0), 0, 1e-12);
  EXPECT_NEAR(bend(0.5), 2, 1e-12);
  EXPECT_NEAR(bend(1), 4, 1e-12);      // 2 more a step
  EXPECT_NEAR(bend(-1.5), 12, 1e-12);  // 4 more a step
  Eigen::VectorXd off = Eigen::Vector2d(10, 3);
  Crest().bend(off);
  EXPECT_EQ(off[0], 10);
}

}  // namespace
}  // namespace fathom::fits
