// The map's document: the planner's own answers at every stop, and web/schema/map.schema.json.
#include "report/map_document.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json_text.h"
#include "report/map_budgets.h"
#include "report/map_plane.h"
#include "report/render_report.h"
#include "report/report_document.h"
#include "schema_check.h"
#include "scratch_folder.h"
#include "shape/find_shape.h"
#include "study/planted_study.h"

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
  const auto made = make_map_document({.plan = request_for(7e9), .options = "--vocab 1000"});
  const json document = json::parse(made.dump());
  EXPECT_EQ(SchemaFile("map.schema.json").complaints(document), std::vector<std::string>{});
  EXPECT_LT(render_map(made).size(), 1'000'000u);
  EXPECT_EQ(document["options"], "--vocab 1000");
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
    const auto table = budget_table({request, stops, kOneDevice}, by_flops);
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
  const MapStops stops{{1e7}, {}, {20}};
  const auto table = budget_table({request, stops, kOneDevice}, false);
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
    EXPECT_EQ(model["year"], 2019);
    return;
  }
  FAIL() << "GPT-2 small is not on the map";
}

TEST(TimeField, HasNarrowTilesWhateverTheGroup) {
  PlanRequest request = request_for(1e9);
  request.base.kv_group = 4;
  const auto field = time_field(request, kOneDevice);
  EXPECT_EQ(field["train_seconds_per_token"][0].size(),
            field["layers"].size() * field["width"].size());
}

TEST(BudgetTable, MayHoldOneRowAlone) {
  const PlanRequest request = request_for(1e9);
  const MapStops stops{{1e9, 2e9}, {}, {20, 100}};
  const TableRequest table{request, stops, kOneDevice};
  const auto plans = budget_table(table, false, 100.0)["plans"];
  EXPECT_TRUE(plans[0].is_null());
  EXPECT_EQ(plans[1], plan_row(table, false, 100));
  EXPECT_EQ(plans[1], budget_table(table, false)["plans"][1]);
}

json overlays_of(const std::vector<std::filesystem::path>& paths) {
  return make_map_document(
      {.plan = request_for(1e9), .overlays = paths, .first_row_only = true})["overlays"];
}

TEST(MapOverlay, AFolderWithoutRunsIsRefused) {
  const ScratchFolder folder;
  EXPECT_THROW(overlays_of({folder.path()}), Error);
  EXPECT_THROW(overlays_of({folder / "gone"}), Error);
}

TEST(MapOverlay, HoldsTheRunsAndTheLawOfAStudy) {
  const study::PlantedStudy planted;
  make_report_document(planted.folder.path());  // leaves the law beside the runs
  const json document = make_map_document(
      {.plan = request_for(1e9), .overlays = {planted.folder.path()}, .first_row_only = true});
  EXPECT_EQ(SchemaFile("map.schema.json").complaints(document), std::vector<std::string>{});
  ASSERT_EQ(document["overlays"].size(), 1u);
  EXPECT_EQ(document["overlays"][0]["name"], "study");
  const json& points = document["overlays"][0]["points"];
  ASSERT_EQ(points.size(), study::planted_records().size());
  EXPECT_EQ(points[0]["layers"], 2);
  EXPECT_EQ(points[0]["facts"][1], json({"tokens", "20.0M"}));
  const auto published = make_map_document({.plan = request_for(1e9), .first_row_only = true});
  EXPECT_EQ(document["laws"].size(), published["laws"].size() + 1);
}

TEST(MapOverlay, HoldsPointsOfATable) {
  const ScratchFolder folder;
  const auto table = folder.write(
      "probes.csv", "name,layers,width,effective depth\nGPT-2 small,12,768,7.5\nmine,6,512,\n");
  const json overlays = overlays_of({table});
  ASSERT_EQ(overlays.size(), 1u);
  EXPECT_EQ(overlays[0]["name"], "probes");
  EXPECT_EQ(overlays[0]["points"][0]["facts"], json::parse(R"([["effective depth", "7.5"]])"));
  EXPECT_TRUE(overlays[0]["points"][1]["facts"].empty());
  EXPECT_THROW(overlays_of({folder.write("a.csv", "layers,width\n0,5\n")}), DataError);
  EXPECT_THROW(overlays_of({folder.write("b.csv", "layers\n4\n")}), DataError);
  EXPECT_THROW(overlays_of({folder.write("c.csv", "layers,width\n")}), DataError);
}

}  // namespace
}  // namespace fathom::report
