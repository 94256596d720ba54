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

struct Exponents {
  double size_width, size_depth, moved_width, moved_depth;
};

/// Of the stream's size and movement after ten steps.
Exponents exponents(const std::string& parametrisation) {
  const auto rows = coordinate_check(small(parametrisation), {{64, 128, 256}, {2, 4, 8}, 10});
  const std::vector<double> widths{64, 128, 256}, depths{2, 4, 8};
  std::vector<double> size[2], moved[2];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    size[i / 3].push_back(rows[i].stream_rms.back());
    moved[i / 3].push_back(rows[i].stream_moved.back());
  }
  return {growth_exponent(widths, size[0]), growth_exponent(depths, size[1]),
          growth_exponent(widths, moved[0]), growth_exponent(depths, moved[1])};
}

TEST(CoordinateCheck, CompletePIsFlatWhereOthersDrift) {
  const Exponents standard = exponents("standard");
  EXPECT_GT(standard.size_width, 0.5);
  EXPECT_GT(standard.size_depth, 0.5);
  EXPECT_GT(standard.moved_width, 0.5);
  EXPECT_GT(standard.moved_depth, 0.5);
  const Exponents mup = exponents("mup");
  EXPECT_LT(std::abs(mup.size_width), 0.15);
  EXPECT_LT(std::abs(mup.moved_width), 0.15);
  EXPECT_GT(mup.size_depth, 0.5);
  const Exponents complete = exponents("completep");
  EXPECT_LT(std::abs(complete.size_width), 0.15);
  EXPECT_LT(std::abs(complete.moved_width), 0.15);
  // Ends in a limit from above: the parts of the branches that do not agree average out with depth.
  EXPECT_LT(std::abs(complete.size_depth), 0.2);
  EXPECT_LT(std::abs(complete.moved_depth), 0.2);
}

TEST(CoordinateCheck, ExponentOfAPowerLaw) {
  EXPECT_NEAR(growth_exponent({1, 2, 4}, {3, 3 * std::sqrt(2.0), 6}), 0.5, 1e-12);
}

}  // namespace
}  // namespace fathom::train
