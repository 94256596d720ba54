// Logits of transformers for small random folders of every family (tools/make_probe_golden.py),
// with config.json in both dialects.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "pretrained/forward.h"

namespace fathom::pretrained {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(FATHOM_SOURCE_DIR) / "tests/golden/families";

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class FamilyGolden : public testing::TestWithParam<std::string> {};

/// What the reference recorded and what Fathom computes: logits, or states where there is no head.
void compare(const fs::path& folder, const char* config) {
  SCOPED_TRACE(config);
  const nlohmann::json golden = read_json_file(folder / "golden.json");
  Checkpoint checkpoint = open_checkpoint(folder);
  *checkpoint.config = read_json_file(folder / config);
  Weights weights(std::move(checkpoint), 1u << 30);
  const Layout& layout = weights.layout();
  const auto ids = golden.at("ids").get<std::vector<data::TokenId>>();
  const Forward forward(weights, std::ssize(ids));
  Scratch scratch;
  std::vector<float> values(ids.size() * static_cast<std::size_t>(layout.width));
  forward.embed(ids, values.data());
  for (std::int64_t l = 0; l < layout.depth(); ++l) {
    forward.run_layer(*weights.layer(l), l, values.data(), scratch);
  }
  const bool has_head = golden.contains("logits");
  EXPECT_EQ(layout.head != HeadKind::none, has_head);
  if (has_head) {
    std::vector<float> logits(ids.size() * static_cast<std::size_t>(layout.vocab));
    forward.logits(values.data(), std::ssize(ids), scratch, logits.data());
    values = std::move(logits);
  }
  double largest = 0, difference = 0;
  std::size_t at = 0;
  for (const auto& row : golden.at(has_head ? "logits" : "states")) {
    for (const double expected : row) {
      largest = std::max(largest, std::abs(expected));
      difference = std::max(difference, std::abs(expected - static_cast<double>(values.at(at++))));
    }
  }
  EXPECT_EQ(at, values.size());
  EXPECT_GT(largest, 0.5);
  EXPECT_LT(difference, 1e-5 * largest);
}

TEST_P(FamilyGolden, NumbersAreThoseOfTransformers) {
  compare(kGolden / GetParam(), "config.json");
  if (fs::exists(kGolden / GetParam() / "config_old.json")) {
    compare(kGolden / GetParam(), "config_old.json");
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyGolden, testing::ValuesIn(golden_names()),
                         [](const auto& family) { return family.param; });

TEST(FamilyGolden, EveryFamilyHasOne) {
  std::set<std::string> seen;
  for (const std::string& name : golden_names()) {
    seen.insert(read_json_file(kGolden / name / "config.json").at("model_type"));
  }
  for (const std::string& family : family_names()) EXPECT_TRUE(seen.contains(family)) << family;
}

}  // namespace
}  // namespace fathom::pretrained
