#include "probe/head_copying.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fathom::probe {
namespace {

TEST(HeadCopying, APlantedHeadThatCopiesHasBothScoresAtOne) {
  const Eigen::MatrixXd letters = Eigen::MatrixXd::Identity(6, 6);
  const CopyScores copies = score_copying(3 * letters, letters);
  EXPECT_NEAR(copies.direct, 1, 1e-12);
  EXPECT_NEAR(copies.positive, 1, 1e-12);
  const CopyScores forbids = score_copying(-3 * letters, letters);
  EXPECT_NEAR(forbids.direct, 0, 1e-12);
  EXPECT_NEAR(forbids.positive, -1, 1e-12);
  const CopyScores silent = score_copying(0 * letters, letters);
  EXPECT_EQ(silent.direct, 0);
  EXPECT_EQ(silent.positive, 0);
}

/// Each letter raises the next one: no logit of the attended token rises. Less their mean, the six
/// sixth roots of unity lose 1, so the others add up to -1 over five magnitudes of 1.
TEST(HeadCopying, AHeadThatShiftsCopiesNothing) {
  Eigen::MatrixXd shift = Eigen::MatrixXd::Zero(6, 6);
  for (Eigen::Index i = 0; i < 6; ++i) shift(i, (i + 1) % 6) = 1;
  const CopyScores scores = score_copying(shift, Eigen::MatrixXd::Identity(6, 6));
  EXPECT_EQ(scores.direct, 0);
  EXPECT_NEAR(scores.positive, -0.2, 1e-9);
}

/// By hand: C = [[4, 0], [1, 3]], centred [[2, -2], [-1, 1]]: direct 1; eigenvalues 0 and 3.
TEST(HeadCopying, IsCountedByHand) {
  Eigen::MatrixXd written(2, 2);
  written << 4, 0, 1, 3;
  const CopyScores scores = score_copying(written, Eigen::MatrixXd::Identity(2, 2));
  EXPECT_NEAR(scores.direct, 1, 1e-12);
  EXPECT_NEAR(scores.positive, 1, 1e-12);
  Eigen::MatrixXd three(3, 3);
  three << 1, 2, 0, 0, 3, 0, 6, 0,
      0;  // rows less their means: (0, 1, -1), (-1, 2, -1), (4, -2, -2)
  EXPECT_NEAR(score_copying(three, Eigen::MatrixXd::Identity(3, 3)).direct, (0 + 1 + 0) / 3.0,
              1e-12);
}

}  // namespace
}  // namespace fathom::probe
