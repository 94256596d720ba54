// Logits of transformers for small random folders of every family (tools/make_probe_golden.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "pretrained/forward.h"

namespace fathom::pretrained {
namespace {

namespace fs = std::filesystem;

TEST(FamilyGolden, LogitsAreThoseOfTransformers) {
  const fs::path root = fs::path(FATHOM_SOURCE_DIR) / "tests/golden/families";
  if (!fs::exists(root)) GTEST_SKIP() << "tools/make_probe_golden.py has not been run";
  for (const auto& entry : fs::directory_iterator(root)) {
    SCOPED_TRACE(entry.path().filename().string());
    const nlohmann::json golden = read_json_file(entry.path() / "golden.json");
    const auto ids = golden.at("ids").get<std::vector<data::TokenId>>();
    Weights weights(open_checkpoint(entry.path()), 1u << 30);
    const Layout& layout = weights.layout();
    const Forward forward(weights, std::ssize(ids));
    Scratch scratch;
    std::vector<float> h(ids.size() * static_cast<std::size_t>(layout.width));
    forward.embed(ids, h.data());
    for (std::int64_t l = 0; l < layout.depth(); ++l) {
      forward.run_layer(*weights.layer(l), l, h.data(), scratch);
    }
    const auto V = static_cast<std::size_t>(layout.vocab);
    std::vector<float> logits(ids.size() * V);
    forward.logits(h.data(), std::ssize(ids), scratch, logits.data());
    double largest = 0, difference = 0;
    for (std::size_t t = 0; t < ids.size(); ++t) {
      for (std::size_t v = 0; v < V; ++v) {
        const double expected = golden.at("logits")[t][v];
        largest = std::max(largest, std::abs(expected));
        difference = std::max(difference, std::abs(expected - logits[t * V + v]));
      }
    }
    EXPECT_LT(difference, 1e-4 * largest);
  }
}

}  // namespace
}  // namespace fathom::pretrained
