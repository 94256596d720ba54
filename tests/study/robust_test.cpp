// Which runs a test of robustness asks for; fits/robustness_test.cpp has what is made of them.
#include "study/robust.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "fits/planted_world.h"
#include "study/study_rows.h"
#include "study/tiny_study.h"

namespace fathom::study {
namespace {

/// The tiny study's folder with rows of a planted surface in place of its own.
struct PlantedRows {
  TinyStudy tiny;
  Study study = tiny.begin();
  std::vector<RunRow> rows;

  PlantedRows() {
    fits::PlantedWorld world;
    world.shapes = fits::gpu_study();
    for (const fits::RunPoint& point : world.draw(1)) {
      RunRow row;
      row.id = std::to_string(rows.size());
      row.layers = point.layers;
      row.width = point.width;
      row.heads = point.width / 16;
      row.non_embedding = std::llround(point.params);
      row.tokens = std::llround(point.tokens);
      row.seed = point.seed;
      row.final_loss = point.loss;
      row.status = train::RunStatus::finished;
      rows.push_back(row);
    }
  }
};

TEST(Robust, RepeatsShapesAroundTheBestDepthWithOneThingChanged) {
  const PlantedRows planted;
  const RobustPlan plan = plan_robust(planted.study, planted.rows, 2.6e6);
  ASSERT_GE(plan.shapes.size(), 3u);
  ASSERT_LE(plan.shapes.size(), 5u);
  for (const GridShape& shape : plan.shapes) {
    EXPECT_LT(std::fabs(std::log(shape.nominal_size() / 2.6e6)), 0.35);
  }
  ASSERT_EQ(plan.changes.size(), 4u);
  std::set<std::string> ids;
  for (const RobustChange& change : plan.changes) {
    EXPECT_EQ(change.ids.size(), plan.shapes.size()) << change.name;
    ids.insert(change.ids.begin(), change.ids.end());
  }
  EXPECT_EQ(ids.size(), 4 * plan.shapes.size());
  const auto spec = [&](std::size_t change) {
    return plan.study.find(plan.changes[change].ids.front())->spec;
  };
  EXPECT_DOUBLE_EQ(spec(0).learning_rate, 0.0015);
  EXPECT_DOUBLE_EQ(spec(1).learning_rate, 0.006);
  EXPECT_EQ(spec(2).batch, 2);
  EXPECT_EQ(spec(2).total_tokens(), spec(0).total_tokens());
  EXPECT_EQ(spec(3).learning_rate, 0.003);
  EXPECT_EQ(spec(3).seed, 3u);  // two seeds were trained at this size
}

TEST(Robust, TakesTheLargestSizeThatIsDecidedAndSaysWhenThereIsNone) {
  PlantedRows planted;
  const RobustPlan plan = plan_robust(planted.study, planted.rows, std::nullopt);
  EXPECT_GT(plan.params, 1e6);
  EXPECT_THROW(plan_robust(planted.study, planted.rows, 1e12), DataError);
  planted.rows.resize(4);
  EXPECT_THROW(plan_robust(planted.study, planted.rows, std::nullopt), DataError);
}

}  // namespace
}  // namespace fathom::study
