#include "train/coordinate_check.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fathom::train {
namespace {

RunSpec small(const std::string& parametrisation) {
  return read_run_spec_text(
      "[data]\ntokens = \"none\"\n"
      "[model]\nlayers = 2\nwidth = 64\nheads = 2\nvocab = 64\ncontext = 32\nbase_width = 64\n"
      "base_layers = 2\nparametrisation = \"" +
          parametrisation + "\"\n[train]\nbatch = 8\nlearning_rate = 0.002\n",
      "test.toml");
}

/// Exponents of the stream's size after ten steps, against width and against depth.
std::pair<double, double> exponents(const std::string& parametrisation) {
  const auto rows = coordinate_check(small(parametrisation), {{64, 128, 256}, {2, 4, 8}, 10});
  std::vector<double> widths, by_width, depths, by_depth;
  for (std::size_t i = 0; i < 3; ++i) {
    widths.push_back(static_cast<double>(rows[i].width));
    by_width.push_back(rows[i].stream_rms.back());
    depths.push_back(static_cast<double>(rows[i + 3].layers));
    by_depth.push_back(rows[i + 3].stream_rms.back());
  }
  return {growth_exponent(widths, by_width), growth_exponent(depths, by_depth)};
}

TEST(CoordinateCheck, CompletePIsFlatWhereOthersDrift) {
  const auto [standard_width, standard_depth] = exponents("standard");
  EXPECT_GT(standard_width, 0.5);
  EXPECT_GT(standard_depth, 0.5);
  const auto [mup_width, mup_depth] = exponents("mup");
  EXPECT_LT(std::abs(mup_width), 0.15);
  EXPECT_GT(mup_depth, 0.5);
  const auto [complete_width, complete_depth] = exponents("completep");
  EXPECT_LT(std::abs(complete_width), 0.15);
  EXPECT_LT(std::abs(complete_depth), 0.15);
}

TEST(CoordinateCheck, ExponentOfAPowerLaw) {
  EXPECT_NEAR(growth_exponent({1, 2, 4}, {3, 3 * std::sqrt(2.0), 6}), 0.5, 1e-12);
}

}  // namespace
}  // namespace fathom::train
