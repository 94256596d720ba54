#include "train/schedule.h"

#include <gtest/gtest.h>

namespace fathom::train {
namespace {

TEST(Schedule, WarmsUpAndReachesItsFloor) {
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::wsd}) {
    const Schedule schedule{kind, 100, 10, 0.1, 0.2};
    EXPECT_DOUBLE_EQ(schedule.factor(0), 0.1);
    EXPECT_DOUBLE_EQ(schedule.factor(9), 1.0);
    EXPECT_DOUBLE_EQ(schedule.factor(10), 1.0);
    EXPECT_NEAR(schedule.factor(100), 0.1, 1e-12);
  }
}

TEST(Schedule, HasItsShapeInTheMiddle) {
  EXPECT_NEAR((Schedule{ScheduleKind::cosine, 100, 0, 0, 0.2}.factor(50)), 0.5, 1e-12);
  EXPECT_NEAR((Schedule{ScheduleKind::linear, 100, 0, 0.2, 0.2}.factor(50)), 0.6, 1e-12);
  const Schedule wsd{ScheduleKind::wsd, 100, 0, 0, 0.2};
  EXPECT_DOUBLE_EQ(wsd.factor(79), 1);
  EXPECT_NEAR(wsd.factor(90), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ((Schedule{ScheduleKind::constant, 100, 0, 0, 0.2}.factor(99)), 1);
}

}  // namespace
}  // namespace fathom::train
