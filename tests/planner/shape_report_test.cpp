#include "planner/shape_report.h"

#include <gtest/gtest.h>

namespace fathom::planner {
namespace {

ShapeReport report_of(const std::string& what) {
  return report_shape(find_shape(what, {}), find_hardware(kDefaultHardware), kDefaultStepTokens);
}

TEST(ShapeReport, Gpt3LiesDeeperThanLevineAsks) {
  const ShapeReport report = report_of("gpt3");
  const LawPlace& levine = report.places.front();
  EXPECT_EQ(levine.info.name, "levine2020");
  EXPECT_NEAR(levine.layers_deeper, 96 - 80.46, 0.005);
  EXPECT_EQ(levine.evidence, laws::Evidence::extrapolated);
  EXPECT_NEAR(report.transition_width, 31793, 0.5);
  EXPECT_FALSE(report.depth_pays());
}

TEST(ShapeReport, ShareOfPeakIsItsFlopsOverItsTime) {
  const ShapeReport report = report_of("12x768");
  const double flops = report.flops.train_per_token * static_cast<double>(kDefaultStepTokens);
  EXPECT_NEAR(report.share_of_peak * report.hardware.peak_flops * report.step.total() / flops, 1,
              1e-12);
  EXPECT_TRUE(report.depth_pays());  // the transition width of 12 layers is 300
  EXPECT_EQ(report.depth_sets_latency(), 768 < report.latency_crossover_width);
}

TEST(ShapeReport, APublishedShapeIsNotItsOwnNeighbour) {
  const ShapeReport report = report_of("Llama-3-8B");
  EXPECT_EQ(report.neighbours.size(), 5u);
  for (const CatalogueEntry* entry : report.neighbours) {
    EXPECT_NE(entry, report.subject.published);
  }
}

}  // namespace
}  // namespace fathom::planner
