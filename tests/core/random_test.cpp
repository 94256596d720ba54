#include "core/random.h"

#include <gtest/gtest.h>

#include <set>

namespace fathom {
namespace {

// Known answers of Philox4x32-10 from the Random123 distribution (kat_vectors).
TEST(Philox, MatchesPublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomStream, ValuesDependOnSeedStreamAndIndexOnly) {
  const RandomStream a(1, 2);
  EXPECT_EQ(a.bits(5), RandomStream(1, 2).bits(5));
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(a.bits(i));
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(RandomStream(1, 3).bits(i));
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(RandomStream(2, 2).bits(i));
  EXPECT_EQ(seen.size(), 3000u);
}

TEST(RandomStream, UniformAndBelowStayInRangeWithRightMean) {
  const RandomStream stream(7, 0);
  double sum = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double u = stream.uniform(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ASSERT_LT(stream.below(i, 13), 13u);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

}  // namespace
}  // namespace fathom
