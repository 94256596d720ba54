#include "theory/head_rank.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "theory/structural_rank.h"
#include "theory/three_layer_defect.h"

namespace fathom::theory {
namespace {

TEST(HeadRank, OneHeadGivesTheStructuralRank) {
  for (std::int64_t layers = 1; layers <= 4; ++layers) {
    for (std::int64_t width = 1; width <= 6; ++width) {
      EXPECT_EQ(head_rank_bound(layers, width, 1), structural_rank({layers, width, width, width}))
          << layers << " " << width;
    }
  }
}

TEST(HeadRank, OneLayerDoesNotSeeHeads) {
  for (const std::int64_t heads : {1, 2, 3, 6}) EXPECT_EQ(head_rank_bound(1, 6, heads), 7);
}

TEST(HeadRank, TwoLayersByHand) {
  // (2,4,4): D = 10, t = 4, m = 6. k = 2: 55 - 21 = 34. k = 3: 16 + min(24, 20) = 36.
  EXPECT_EQ(head_degree_bounds(2, 4, 4, 4), (std::vector<mpz_class>{1, 10, 34, 36, 4}));
  // (2,4,2): t = 8, m = 2. k = 2: 55 - 3.
  EXPECT_EQ(head_degree_bounds(2, 4, 2, 4), (std::vector<mpz_class>{1, 10, 52, 40, 4}));
  // d = H: k = 2 gives d (d^2 + 1) / 2.
  for (std::int64_t d = 2; d <= 20; ++d) {
    EXPECT_EQ(head_degree_bounds(2, d, d, d)[2], d * (d * d + 1) / 2);
  }
}

TEST(HeadRank, MoreHeadsNeverRaiseIt) {
  for (const std::int64_t width : {6, 8, 12}) {
    mpz_class before = head_rank_bound(3, width, 1);
    for (std::int64_t heads = 2; heads <= width; ++heads) {
      if (width % heads != 0) continue;
      const mpz_class now = head_rank_bound(3, width, heads);
      EXPECT_LE(now, before);
      before = now;
    }
  }
}

TEST(HeadRank, ANarrowEmbeddingHidesTheHeads) {
  // r = 2 through d = 8, H = 4: three directions of S, sixteen forms: nothing is hidden.
  mpz_class sum = 0;
  for (const mpz_class& bound : head_degree_bounds(2, 8, 4, 2)) sum += bound;
  EXPECT_EQ(sum, structural_rank({2, 2, 2, 2}));
}

TEST(ThreeLayerDefect, IsTheHilbertFunctionOfTwoQuadrics) {
  EXPECT_EQ(three_layer_defect(3), 0);
  EXPECT_EQ(three_layer_defect(4), 4);       // two conics meet in four points
  EXPECT_EQ(three_layer_defect(5), 4 * 14);  // a quartic curve of genus one
  EXPECT_EQ(three_layer_defect(6), 421);
}

TEST(HeadRank, RefusesHeadsThatDoNotDivide) {
  EXPECT_THROW(head_rank_bound(2, 4, 3), ConfigError);
  EXPECT_THROW(head_rank_bound(0, 4, 1), ConfigError);
}

}  // namespace
}  // namespace fathom::theory
