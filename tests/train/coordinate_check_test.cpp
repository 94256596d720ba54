#include "train/coordinate_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

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

/// Of the stream's size and movement after ten steps.
CoordinateExponents exponents(const std::string& parametrisation) {
  return coordinate_check(small(parametrisation), {{64, 128, 256}, {2, 4, 8}, 10}).exponents;
}

TEST(CoordinateCheck, CompletePIsFlatWhereOthersDrift) {
  const CoordinateExponents standard = exponents("standard");
  EXPECT_GT(standard.size_width, 0.5);
  EXPECT_GT(standard.size_depth, 0.5);
  EXPECT_GT(standard.moved_width, 0.5);
  EXPECT_GT(standard.moved_depth, 0.5);
  const CoordinateExponents mup = exponents("mup");
  EXPECT_LT(std::abs(mup.size_width), 0.15);
  EXPECT_LT(std::abs(mup.moved_width), 0.15);
  EXPECT_GT(mup.size_depth, 0.5);
  const CoordinateExponents complete = exponents("completep");
  EXPECT_LT(std::abs(complete.size_width), 0.15);
  EXPECT_LT(std::abs(complete.moved_width), 0.15);
  // Ends in a limit from above: the parts of the branches that do not agree average out with depth.
  EXPECT_LT(std::abs(complete.size_depth), 0.2);
  EXPECT_LT(std::abs(complete.moved_depth), 0.2);
}

TEST(CoordinateCheck, ExponentsAreThoseOfTheRows) {
  const CoordinateCheck check = coordinate_check(small("standard"), {{64, 128}, {2, 4}, 2});
  ASSERT_EQ(check.by_width.size(), 2u);
  ASSERT_EQ(check.by_depth.size(), 2u);
  EXPECT_EQ(check.by_width[1].width, 128);
  EXPECT_EQ(check.by_depth[1].layers, 4);
  const auto slope = [](const std::vector<CoordinateRow>& rows) {  // both sizes double
    return std::log2(rows[1].stream_moved.back() / rows[0].stream_moved.back());
  };
  EXPECT_NEAR(check.exponents.moved_width, slope(check.by_width), 1e-12);
  EXPECT_NEAR(check.exponents.moved_depth, slope(check.by_depth), 1e-12);
}

TEST(CoordinateCheck, NeedsAVocabulary) {
  RunSpec spec = small("standard");
  spec.model.vocab = 0;
  EXPECT_THROW(coordinate_check(spec, {{64}, {2}, 1}), ConfigError);
}

TEST(CoordinateCheck, ExponentOfAPowerLaw) {
  EXPECT_NEAR(growth_exponent({1, 2, 4}, {3, 3 * std::sqrt(2.0), 6}), 0.5, 1e-12);
}

}  // namespace
}  // namespace fathom::train
