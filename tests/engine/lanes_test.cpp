#include "engine/plan/lanes.h"

#include <gtest/gtest.h>

namespace fathom::engine {
namespace {

LaneTask task(Lane lane, std::vector<ByteRange> reads, std::vector<ByteRange> writes) {
  return {lane, {std::move(reads), std::move(writes)}};
}

constexpr ByteRange kA{0, 100}, kB{100, 200}, kC{200, 300}, kPartOfA{90, 110};

TEST(Lanes, ATaskWaitsForWhatItReads) {
  const auto schedule =
      schedule_lanes({task(Lane::main, {}, {kA}), task(Lane::side, {kA}, {kB}),
                      task(Lane::main, {kC}, {kC}), task(Lane::main, {kB}, {kC})});
  EXPECT_EQ(schedule.waits, (std::vector<std::ptrdiff_t>{kNoTask, 0, kNoTask, 1}));
  EXPECT_EQ(schedule.signals, (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(schedule.last_side, 1);
}

TEST(Lanes, NobodyOverwritesWhatIsStillReadOrWritten) {
  const auto schedule =
      schedule_lanes({task(Lane::main, {}, {kA}), task(Lane::side, {kA}, {kB}),
                      task(Lane::main, {kA}, {kC}), task(Lane::main, {}, {kPartOfA})});
  EXPECT_EQ(schedule.waits, (std::vector<std::ptrdiff_t>{kNoTask, 0, kNoTask, 1}));
}

TEST(Lanes, AWaitCoversAllEarlierTasks) {
  const auto schedule = schedule_lanes({task(Lane::side, {}, {kA}), task(Lane::side, {}, {kB}),
                                        task(Lane::main, {kB}, {}), task(Lane::main, {kA}, {})});
  EXPECT_EQ(schedule.waits, (std::vector<std::ptrdiff_t>{kNoTask, kNoTask, 1, kNoTask}));
  EXPECT_EQ(schedule.signals, (std::vector<bool>{false, true, false, false}));
}

TEST(Lanes, OneLaneWaitsForNobody) {
  const auto schedule = schedule_lanes({task(Lane::main, {}, {kA}), task(Lane::main, {kA}, {kA})});
  EXPECT_EQ(schedule.waits, (std::vector<std::ptrdiff_t>{kNoTask, kNoTask}));
  EXPECT_EQ(schedule.last_side, kNoTask);
}

}  // namespace
}  // namespace fathom::engine
