#include "fits/depth_surface.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fits/smooth_basis.h"
#include "laws/levine.h"

namespace fathom::fits {
namespace {

const double kCentre = std::log(3e6);

/// u0 and ln s of the exponential law with these constants.
Eigen::VectorXd exponential_parameters(const laws::LevineFit& fit) {
  const double layers = laws::LevineLaw(fit).depth_for(std::exp(kCentre));
  return Eigen::Vector2d(std::log(layers), -std::log(1 + 2 * fit.b * layers));
}

// The published law through Lambert's W, which shares no code with the Newton steps here.
TEST(DepthLaw, ExponentialIsThePublishedLaw) {
  for (const double b : {0.01, 0.0555, 0.3}) {
    laws::LevineFit fit;
    fit.b = b;
    const laws::LevineLaw published(fit);
    const DepthLaw law(LawForm::exponential, kCentre);
    const Eigen::VectorXd parameters = exponential_parameters(fit);
    for (const double size : {2e5, 1e6, 3e6, 2e7, 1e9, 1e12}) {
      const double layers = published.depth_for(size);
      const auto place = law.at(parameters.data(), std::log(size));
      EXPECT_NEAR(std::exp(place.log_depth), layers, 1e-8 * layers) << size;
      EXPECT_NEAR(place.slope, 1 / (1 + 2 * b * layers), 1e-8);
      EXPECT_NEAR(law.log_size(parameters.data(), std::log(layers)), std::log(size), 1e-8);
    }
    const auto constants = law.constants(parameters.data(), 12);
    EXPECT_NEAR(constants.a, fit.a, 1e-10);
    EXPECT_NEAR(constants.b, fit.b, 1e-12);
  }
}

TEST(DepthLaw, FixedRatioKeepsIt) {
  const DepthLaw law(LawForm::ratio, kCentre);
  const double u0 = 1.3;
  const auto aspect = [&](double size) {
    const double layers = std::exp(law.at(&u0, std::log(size)).log_depth);
    return std::sqrt(size / (12 * layers)) / layers;
  };
  EXPECT_NEAR(aspect(2e5), aspect(5e9), 1e-9 * aspect(2e5));
}

TEST(DepthLaw, GradientsAndInverses) {
  for (const LawForm form : kLawForms) {
    const DepthLaw law(form, kCentre);
    for (const double slope : {0.2, 0.6, 1.3}) {
      Eigen::Vector3d parameters(1.4, std::log(slope), -0.15);
      for (const double x : {kCentre - 3, kCentre - 0.2, kCentre + 0.5}) {
        const auto place = law.at(parameters.data(), x);
        EXPECT_DOUBLE_EQ(law.log_depth(parameters.data(), x), place.log_depth);
        const auto moved = [&](double to) { return law.at(parameters.data(), to).log_depth; };
        EXPECT_NEAR(place.slope, (moved(x + 1e-5) - moved(x - 1e-5)) / 2e-5, 1e-7);
        EXPECT_NEAR(law.log_size(parameters.data(), place.log_depth), x, 1e-8);
        for (int i = 0; i < law.size(); ++i) {
          Eigen::Vector3d up = parameters;
          Eigen::Vector3d down = parameters;
          up[i] += 1e-5;
          down[i] -= 1e-5;
          const double slope_here =
              (law.at(up.data(), x).log_depth - law.at(down.data(), x).log_depth) / 2e-5;
          EXPECT_NEAR(place.gradient[static_cast<std::size_t>(i)], slope_here, 1e-7)
              << name_of(form) << " " << i;
        }
      }
    }
  }
}

Eigen::VectorXd some_parameters(const DepthSurface& surface) {
  Eigen::VectorXd parameters(surface.size());
  const Eigen::Vector3d law(1.4, std::log(0.4), -0.15);
  const int k = surface.law().size();
  parameters.head(k) = law.head(k);
  parameters.segment(k, 4) << std::log(0.02), -0.2, -0.4, std::log(0.3);
  if (surface.size() > k + 4) parameters.tail(3) << 0.3, 0.1, -0.2;
  return parameters;
}

TEST(DepthSurface, ASectionIsThePenaltyAtManyDepths) {
  const DepthSurface surface(LawForm::free, kCentre, false);
  const Eigen::VectorXd parameters = some_parameters(surface);
  const Eigen::ArrayXd depths = Eigen::ArrayXd::LinSpaced(13, -0.7, 4);
  const Eigen::ArrayXd values = surface.section(parameters, kCentre + 1).at(depths);
  for (Eigen::Index i = 0; i < depths.size(); ++i) {
    EXPECT_NEAR(values[i], surface.penalty(parameters, {kCentre + 1, depths[i], 0}), 1e-14);
  }
}

TEST(DepthSurface, PenaltyIsLeastAtTheLawAndHasItsCurvature) {
  const DepthSurface surface(LawForm::exponential, kCentre, false);
  const Eigen::VectorXd parameters = some_parameters(surface);
  for (const double x : {kCentre - 2, kCentre + 2}) {
    const double u = surface.best_log_depth(parameters, x);
    const auto at = [&](double v) { return surface.penalty(parameters, {x, u + v, 0}); };
    EXPECT_NEAR(at(0), 0, 1e-15);
    EXPECT_GT(at(0.01), 0);
    EXPECT_GT(at(-0.01), 0);
    EXPECT_NEAR((at(1e-3) + at(-1e-3)) / 1e-6, surface.curvature(parameters, x), 1e-7);
    EXPECT_GT(at(-1), at(1));  // p - q < 0: too shallow costs more
  }
}

TEST(DepthSurface, GradientsAreThoseOfThePenalty) {
  for (const LawForm form : kLawForms) {
    for (const bool lengths : {false, true}) {
      const DepthSurface surface(form, kCentre, lengths);
      const Eigen::VectorXd parameters = some_parameters(surface);
      Eigen::RowVectorXd gradient(surface.size());
      for (const double u : {0.7, 1.4, 2.9}) {
        const SurfacePlace place{kCentre + 1.1, u, lengths ? -0.7 : 0};
        EXPECT_NEAR(surface.penalty(parameters, place, gradient),
                    surface.penalty(parameters, place), 1e-15);
        for (int i = 0; i < surface.size(); ++i) {
          Eigen::VectorXd up = parameters;
          Eigen::VectorXd down = parameters;
          up[i] += 1e-5;
          down[i] -= 1e-5;
          EXPECT_NEAR(gradient[i],
                      (surface.penalty(up, place) - surface.penalty(down, place)) / 2e-5, 1e-9)
              << name_of(form) << " " << i;
        }
      }
    }
  }
}

// The crossing of two depths, found by bisection on the penalties themselves.
TEST(DepthSurface, CrossingsAreWhereTwoPenaltiesMeet) {
  for (const LawForm form : kLawForms) {
    const DepthSurface surface(form, kCentre, false);
    const Eigen::VectorXd parameters = some_parameters(surface);
    for (const auto& [shallow, deep] : {std::pair{2.0, 3.0}, std::pair{3.0, 12.0}}) {
      double low = kCentre - 8;
      double high = kCentre + 6;
      for (int i = 0; i < 100; ++i) {
        const double x = (low + high) / 2;
        const bool deeper_wins = surface.penalty(parameters, {x, std::log(deep), 0}) <
                                 surface.penalty(parameters, {x, std::log(shallow), 0});
        (deeper_wins ? high : low) = x;
      }
      EXPECT_NEAR(surface.crossing(parameters, shallow, deep), low, 1e-6) << name_of(form);
    }
  }
  EXPECT_NEAR(crossing_log_depth(3, 12, 0.4, 0.4), std::log(6.0), 1e-12);
  EXPECT_GT(crossing_log_depth(3, 12, 0.8, 0.2), std::log(6.0));
}

TEST(SmoothBasis, GivesTheKernelBack) {
  const SmoothLine line({2, 7}, {1.5});
  for (const double s : {2.0, 3.3, 6.9}) {
    for (const double t : {2.2, 5.0, 7.0}) {
      EXPECT_NEAR(line.at(s).dot(line.at(t)), std::exp(-(s - t) * (s - t) / (2 * 1.5 * 1.5)), 0.02);
    }
  }
  const SmoothLine two({0, 4}, {0.4, 1});
  const double apart = 0.6 * 0.6 / 2;
  EXPECT_NEAR(two.at(1.5).dot(two.at(2.1)), (std::exp(-apart / 0.16) + std::exp(-apart)) / 2, 0.02);
  const SmoothSurface surface(line, SmoothLine({0, 3}, {0.5}), SmoothLine({0, 0}, {1}));
  const SurfacePlace a{3, 1.2, 0};
  const SurfacePlace b{4, 1.6, 0};
  EXPECT_NEAR(surface.at(a).dot(surface.at(b)), std::exp(-1 / 4.5 - 0.16 / 0.5), 0.03);
}

}  // namespace
}  // namespace fathom::fits
