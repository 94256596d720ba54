#include "engine/plan/occupied_space.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"

namespace fathom::engine {
namespace {

struct Taken {
  std::size_t first, last;
  std::int64_t begin, end;
};

/// The definition: every pair of blocks is looked at.
std::int64_t lowest_gap_by_hand(std::size_t first, std::size_t last, std::int64_t bytes,
                                std::vector<Taken> taken) {
  std::sort(taken.begin(), taken.end(),
            [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  std::int64_t offset = 0;
  for (const Taken& other : taken) {
    if (other.last < first || last < other.first) continue;
    if (other.begin >= offset + bytes) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

TEST(OccupiedSpace, FindsTheSameGapsAsEveryPair) {
  const RandomStream random(5, 0);
  std::uint64_t next = 0;
  const auto below = [&](std::uint64_t limit) { return random.below(next++, limit); };
  for (int round = 0; round < 40; ++round) {
    const std::size_t times = 1 + below(70);
    OccupiedSpace space(times);
    std::vector<Taken> all;
    for (int i = 0; i < 60; ++i) {
      const std::size_t first = below(times), last = first + below(times - first);
      const auto bytes = static_cast<std::int64_t>(1 + below(9));
      std::vector<const ByteRanges*> taken;
      space.find_taken(first, last, taken);
      const std::int64_t offset = lowest_gap(bytes, taken);
      ASSERT_EQ(offset, lowest_gap_by_hand(first, last, bytes, all));
      space.take(first, last, offset, offset + bytes);
      all.push_back({first, last, offset, offset + bytes});
    }
  }
}

TEST(OccupiedSpace, GapsBetweenNeighboursGrowTogether) {
  ByteRanges ranges;
  ranges.add(0, 10);
  ranges.add(20, 30);
  EXPECT_EQ(ranges.end_of_meeting(0, 5), 10);
  EXPECT_EQ(ranges.end_of_meeting(10, 20), 10);  // free
  ranges.add(10, 20);
  EXPECT_EQ(ranges.end_of_meeting(5, 6), 30);
  EXPECT_EQ(ranges.end_of_meeting(30, 99), 30);
}

}  // namespace
}  // namespace fathom::engine
