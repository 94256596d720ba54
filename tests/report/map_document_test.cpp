// The map's document: the planner's own answers at every stop, and web/schema/map.schema.json.
#include "report/map_document.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json_text.h"
#include "report/map_budgets.h"
#include "report/map_plane.h"
#include "report/render_report.h"
#include "report/schema_check.h"
#include "scratch_folder.h"
#include "shape/find_shape.h"

namespace fathom::report {
namespace {

using nlohmann::json;
using planner::PlanRequest;

PlanRequest request_for(double parameters) {
  PlanRequest request;
  request.parameters = parameters;
  request.base.gated = true;
  return request;
}

const std::vector<Hardware> kOneDevice{find_hardware("h200")};

TEST(MapDocument, FollowsTheSchemaAndFitsOneMegabyte) {
  const auto made = make_map_document({request_for(7e9), {}});
  const json document = json::parse(made.dump());
  EXPECT_EQ(SchemaFile("map.schema.json").complaints(document), std::vector<std::string>{});
  EXPECT_LT(render_map(made).size(), 1'000'000u);
  const json& start = document["start"];
  EXPECT_EQ(document["by_parameters"]["stops"][start["budget"].get<std::size_t>()], 7e9);
  EXPECT_EQ(document["tokens_per_parameter"][start["tokens"].get<std::size_t>()], 20);
  EXPECT_EQ(document["laws"].size(), document["by_parameters"]["plans"][0][0]["laws"].size());
}

TEST(MapStopsTest, HoldTheRequestAndRise) {
  PlanRequest request = request_for(7.3e9);
  request.tokens = 1e12;
  const MapStops stops = make_stops(request, 7.3e9);
  for (const auto* list : {&stops.parameters, &stops.flops, &stops.tokens_per_parameter}) {
    EXPECT_TRUE(std::is_sorted(list->begin(), list->end()));
    EXPECT_EQ(std::adjacent_find(list->begin(), list->end()), list->end());
  }
  const auto holds = [](const std::vector<double>& list, double value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  EXPECT_TRUE(holds(stops.parameters, 7.3e9));
  EXPECT_TRUE(holds(stops.parameters, 6.8e9));
  EXPECT_TRUE(holds(stops.tokens_per_parameter, 1e12 / 7.3e9));
  EXPECT_EQ(stops.parameters.back(), 1e12);
  EXPECT_EQ(stops.flops.back(), 1e27);
}

TEST(BudgetTable, IsThePlannersOwnAnswer) {
  const MapStops stops{{1e9}, {1e21}, {20, 100}};
  const PlanRequest request = request_for(1e9);
  for (const bool by_flops : {false, true}) {
    const auto table = budget_table(request, stops, by_flops, {}, kOneDevice);
    for (std::size_t row = 0; row < 2; ++row) {
      PlanRequest own = request;
      if (by_flops) {
        own.parameters.reset();
        own.flops = 1e21;
      }
      own.tokens_per_parameter = stops.tokens_per_parameter[row];
      const planner::Plan plan = planner::make_plan(own);
      const auto& stop = table["plans"][row][0];
      EXPECT_EQ(stop["pick"][0], plan.recommendation.shape.layers);
      EXPECT_EQ(stop["pick"][1], plan.recommendation.shape.width);
      EXPECT_EQ(stop["counted"], plan.recommendation.parameters);
      EXPECT_EQ(stop["tokens"], map_number(plan.tokens));
      EXPECT_EQ(stop["train_seconds"][0], map_number(plan.recommendation.train_seconds));
      EXPECT_EQ(stop["decode_seconds"][0], map_number(plan.recommendation.decode_seconds));
    }
  }
}

TEST(BudgetTable, LeavesImpossibleStopsEmpty) {
  PlanRequest request = request_for(1e12);
  request.rules.max_layers = 2;
  request.rules.width_multiple = 4096;
  const auto table = budget_table(request, {{1e7}, {}, {20}}, false, {}, kOneDevice);
  EXPECT_TRUE(table["plans"][0][0].is_null());
}

TEST(PublishedModels, AreTheDenseDecodersWithTheirExactCounts) {
  const auto models = published_models(kOneDevice, kDefaultStepTokens);
  std::size_t dense = 0;
  for (const CatalogueEntry& entry : catalogue()) dense += entry.dense_decoder() ? 1 : 0;
  ASSERT_EQ(models.size(), dense);
  for (const auto& model : models) {
    if (model["name"] != "GPT-2 small") continue;
    EXPECT_EQ(model["total"], 124'439'808);
    return;
  }
  FAIL() << "GPT-2 small is not on the map";
}

TEST(MapOverlay, AFolderWithoutRunsIsRefused) {
  const ScratchFolder folder;
  EXPECT_THROW(make_map_document({request_for(1e9), {folder.path()}}), Error);
  EXPECT_THROW(make_map_document({request_for(1e9), {folder / "gone"}}), Error);
}

}  // namespace
}  // namespace fathom::report
