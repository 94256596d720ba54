// Time estimates, pace and the cutting of runs into Slurm tasks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

#include "core/error.h"
#include "study/executor.h"
#include "study/slurm_executor.h"
#include "study/speed.h"
#include "tiny_study.h"

namespace fathom::study {
namespace {

PlannedRun planned(const std::string& id, double step_flops, std::int64_t steps) {
  PlannedRun run;
  run.id = id;
  run.spec.schedule.steps = steps;
  run.spec.eval_tokens = 1;
  run.flops = step_flops * static_cast<double>(steps);
  run.tokens = 1'000'000'000'000;  // one evaluation is then next to nothing
  return run;
}

TEST(SpeedModel, InterpolatesRatesAndFillsWorkers) {
  const SpeedModel speed{{{1e6, 1e6}, {1e8, 3e6}}, 0};
  EXPECT_NEAR(speed.seconds(planned("a", 1e6, 10)), 10, 1e-6);
  EXPECT_NEAR(speed.seconds(planned("b", 1e7, 10)), 50, 1e-6);  // halfway in the logarithm: 2e6
  EXPECT_NEAR(speed.seconds(planned("c", 3e8, 10)), 1000, 1e-6);
  PlannedRun half = planned("d", 1e6, 10);
  half.shared_steps = 5;
  EXPECT_NEAR(speed.seconds(half), 5, 1e-6);
  const std::vector<PlannedRun> runs{planned("a", 1e6, 30), planned("b", 1e6, 20),
                                     planned("c", 1e6, 20), planned("d", 1e6, 10)};
  EXPECT_NEAR(study_seconds(runs, speed, 2), 40, 1e-6);  // 30 + 10 and 20 + 20
  EXPECT_NEAR(study_seconds(runs, speed, 1), 80, 1e-6);
  EXPECT_TRUE(std::isnan(SpeedModel{}.seconds(runs[0])));
  EXPECT_TRUE(std::isnan(study_seconds(runs, {}, 1)));  // not 0
  EXPECT_EQ(study_seconds({}, {}, 1), 0);
}

TEST(SpeedModel, MeasuresTheStudysOwnShapes) {
  const TinyStudy tiny;
  const auto runs = plan_runs(tiny.spec(), TokenFacts{{}, 257});
  const SpeedModel speed = measure_speed(runs, 1, 0.5);
  ASSERT_GE(speed.points.size(), 2u);
  for (const SpeedPoint& point : speed.points) EXPECT_GT(point.flops_per_second, 1e6);
  EXPECT_GT(study_seconds(runs, speed, 1), 0);
}

// Eight times as many runs take about eight times as long; were it quadratic, 64 times.
TEST(PlannedRuns, TakeTimeLinearInTheirNumber) {
  const TinyStudy tiny;
  const auto ticks = [&](int seeds) {
    std::string list = "seeds.all=[1";
    for (int seed = 2; seed <= seeds; ++seed) list += fmt::format(",{}", seed);
    const std::clock_t begin = std::clock();
    EXPECT_EQ(plan_runs(tiny.spec({list + "]"}), TokenFacts{{}, 257}).size(),
              4 * static_cast<std::size_t>(seeds));
    return static_cast<double>(std::clock() - begin);
  };
  ticks(100);
  EXPECT_LT(ticks(8000), 25 * ticks(1000));
}

TEST(StudyPace, CountsOnlyTheWorkOfThisCommand) {
  const PlannedRun a = planned("a", 1e6, 100), b = planned("b", 1e6, 100);
  StudyPace pace({&a, &b});
  pace.begin(a, 50);
  pace.finish(a);
  Snapshot snapshot;
  pace.fill(snapshot);
  EXPECT_LT(snapshot.left_seconds, 0);  // too early to say
  EXPECT_GE(snapshot.elapsed_seconds, 0);
}

TEST(SlurmTasks, AreCutByNumberOrByWork) {
  std::vector<PlannedRun> runs;
  for (int i = 0; i < 7; ++i) runs.push_back(planned(std::to_string(i), 1e9, 10));
  std::vector<const PlannedRun*> pointers;
  for (const PlannedRun& run : runs) pointers.push_back(&run);
  const auto threes = make_tasks(pointers, 3);
  ASSERT_EQ(threes.size(), 3u);
  EXPECT_EQ(threes[0], (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(threes[2], (std::vector<std::string>{"6"}));
  EXPECT_EQ(make_tasks(pointers, 0).size(), 1u);        // half a second each: one task
  for (PlannedRun& run : runs) run.flops = 400 * 20e9;  // 400 s each: two fill ten minutes
  EXPECT_EQ(make_tasks(pointers, 0).size(), 4u);
}

TEST(SlurmTasks, AreReadBackByTheirIndex) {
  const ScratchFolder folder;
  const auto file = folder.write("t.tasks", "a b\nc\n");
  EXPECT_EQ(read_task(file, 0), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read_task(file, 1), (std::vector<std::string>{"c"}));
  EXPECT_THROW(read_task(file, 2), DataError);
}

}  // namespace
}  // namespace fathom::study
