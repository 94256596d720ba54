#include "serve/pace.h"

#include <gtest/gtest.h>

namespace fathom::serve {
namespace {

TEST(Pace, KnowsNothingWhileNobodyTrains) {
  Pace pace;
  EXPECT_FALSE(pace.left({.seconds = 0, .left_flops = 100, .run_flops_per_second = 5}));
}

TEST(Pace, StartsFromTheRecordsAndGoesOverToWhatItSees) {
  Pace pace;
  // Two runs at 5 FLOPs a second each, 100 FLOPs left.
  Progress now{.done_flops = 10, .left_flops = 100, .run_flops_per_second = 5, .running = 2};
  EXPECT_DOUBLE_EQ(*pace.left(now), 10);
  // 40 FLOPs in 20 seconds are 2 a second; 60 are left.
  now.seconds = 20;
  now.done_flops = 50;
  now.left_flops = 60;
  EXPECT_DOUBLE_EQ(*pace.left(now), 30);
}

TEST(Pace, ForgetsAPause) {
  Pace pace;
  Progress now{.seconds = 0, .done_flops = 0, .left_flops = 100, .running = 1};
  EXPECT_FALSE(pace.left(now));
  now.seconds = 20;
  now.done_flops = 20;
  EXPECT_TRUE(pace.left(now));
  now.running = 0;
  EXPECT_FALSE(pace.left(now));
  now.seconds = 1000;
  now.running = 1;
  EXPECT_FALSE(pace.left(now));  // seen training for no time yet
}

}  // namespace
}  // namespace fathom::serve
