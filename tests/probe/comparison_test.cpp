// Two probes side by side: the sentences and cuts from documents written by hand.
#include "probe/comparison.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace fathom::probe {
namespace {

using Json = nlohmann::ordered_json;

/// Costs of its layers, and a greedy curve that rises by 0.1 a layer.
Json probe_of(const std::string& name, const std::vector<double>& costs) {
  Json probe{{"model", {{"name", name}, {"layers", costs.size()}, {"vocabulary", 100}}},
             {"text", "notes"},
             {"tokens", 1000},
             {"loss", 2.0},
             {"loss_interval", {1.9, 2.1}},
             {"bits_per_byte", nullptr},
             {"layers", Json::array()},
             {"greedy", Json::array()}};
  for (std::size_t l = 0; l < costs.size(); ++l) {
    probe["layers"].push_back({{"layer", l}, {"removal", costs[l]}});
  }
  for (std::size_t n = 0; n <= costs.size() / 2; ++n) {
    probe["greedy"].push_back(
        {{"kept", costs.size() - n}, {"loss", 2.0 + 0.1 * static_cast<double>(n)}});
  }
  return probe;
}

std::string all(const Comparison& comparison) {
  std::string text;
  for (const std::string& sentence : comparison.sentences) text += sentence + "\n";
  return text;
}

TEST(Comparison, SaysWhatBothMeasured) {
  const Comparison c =
      compare_probes(probe_of("deep", {1.5, 0.01, 0.3, 0.016}), probe_of("flat", {2.0, 0.5}));
  EXPECT_EQ(all(c),
            "On notes, deep loses 2.000 (1.900 to 2.100) nats per token and flat 2.000 (1.900 to "
            "2.100).\n"
            "Removing one layer costs deep 0.0100 (layer 1) to 1.500 (layer 0), median 0.158 nats "
            "per token, flat 0.5000 (layer 1) to 2.000 (layer 0), median 1.250.\n"
            "2 of 4 layers of deep and 0 of 2 of flat cost less than 0.02 nats each.\n"
            "Cutting a quarter of the layers greedily, nothing trained again, costs deep 0.100 and "
            "flat 0.050 nats per token.\n");
  ASSERT_EQ(c.cuts.size(), 3u);
  EXPECT_NEAR(*c.cuts[0].a, 0.05, 1e-12);  // half of a layer, between two points
  EXPECT_NEAR(*c.cuts[2].a, 0.2, 1e-12);
  EXPECT_NEAR(*c.cuts[2].b, 0.1, 1e-12);
}

TEST(Comparison, DoesNotCompareWhatCountsOtherThings) {
  Json other = probe_of("other", {1.0, 1.0});
  other["model"]["vocabulary"] = 200;
  EXPECT_NE(all(compare_probes(probe_of("one", {1.0, 1.0}), other)).find("Their tokens differ"),
            std::string::npos);
  other["text"] = "letters";
  EXPECT_NE(all(compare_probes(probe_of("one", {1.0, 1.0}), other))
                .find("one was measured on notes, other on letters"),
            std::string::npos);
  Json a = probe_of("one", {1.0, 1.0}), b = a;
  a["bits_per_byte"] = 1.25;
  b["bits_per_byte"] = 1.5;
  EXPECT_NE(all(compare_probes(a, b)).find("one (A) needs 1.250 bits per byte and one (B) 1.500."),
            std::string::npos);
}

TEST(Comparison, NeedsTheJsonOfAProbeAndLivesWithoutLosses) {
  EXPECT_THROW(compare_probes(Json{{"model", 1}}, Json{{"model", 1}}), DataError);
  Json shallow = probe_of("encoder", {1.0, 1.0});
  shallow["loss"] = nullptr;
  shallow["greedy"] = Json::array();
  for (Json& layer : shallow["layers"]) layer["removal"] = nullptr;
  const Comparison c = compare_probes(shallow, shallow);
  EXPECT_TRUE(c.sentences.empty());
  EXPECT_TRUE(c.cuts.empty());
}

}  // namespace
}  // namespace fathom::probe
