#include "probe/head_distances.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fathom::probe {
namespace {

TEST(JensenShannon, IsZeroForEqualRowsAndLnTwoForDisjointOnes) {
  const std::vector<float> a{0.5f, 0.5f, 0, 0}, b{0, 0, 0.25f, 0.75f}, c{0.5f, 0, 0.5f, 0};
  EXPECT_DOUBLE_EQ(jensen_shannon(a, a), 0);
  EXPECT_NEAR(jensen_shannon(a, b), std::log(2.0), 1e-12);
  EXPECT_NEAR(jensen_shannon(a, c), std::log(2.0) / 2, 1e-12);  // they share half of their mass
  EXPECT_DOUBLE_EQ(jensen_shannon(a, c), jensen_shannon(c, a));
}

}  // namespace
}  // namespace fathom::probe
