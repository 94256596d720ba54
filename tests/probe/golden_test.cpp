// Block Influence and the loss without each layer, against a straightforward script over
// transformers (tools/make_probe_golden.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "probe/probe.h"
#include "shape/hf_config.h"
#include "shape/parameters.h"

namespace fathom::probe {
namespace {

namespace fs = std::filesystem;

TEST(ProbeGolden, InfluenceAndRemovalsAreThoseOfAScriptOverTransformers) {
  const fs::path root = fs::path(FATHOM_SOURCE_DIR) / "tests/golden/families";
  std::size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    SCOPED_TRACE(entry.path().filename().string());
    const nlohmann::json golden = read_json_file(entry.path() / "golden.json");
    const bool masked =
        read_json_file(entry.path() / "config.json").dump().find("MaskedLM") != std::string::npos;
    ProbeText text;
    Window& window = text.windows.emplace_back();
    window.inputs = golden.at("ids").get<std::vector<TokenId>>();
    window.targets = window.inputs;
    if (!masked) {
      std::rotate(window.targets.begin(), window.targets.begin() + 1, window.targets.end());
      window.targets.back() = -1;
    }
    pretrained::Weights weights(pretrained::open_checkpoint(entry.path()), 1u << 30);
    ProbeOptions options;
    options.fixed_tokens = true;
    options.heads = options.curves = options.lens = false;
    const ProbeResult result = probe_model(weights, text, "golden", options);
    for (const LayerResult& layer : result.layers) {
      const auto l = static_cast<std::size_t>(layer.layer);
      EXPECT_NEAR(layer.geometry.influence, golden.at("influence")[l].get<double>(), 1e-5);
      if (!golden.contains("loss")) continue;
      const double without = golden.at("without")[l], whole = golden.at("loss");
      EXPECT_NEAR(result.loss.mean, whole, 1e-5);
      EXPECT_NEAR(layer.removal.mean, without - whole, 2e-5);
      ++compared;
    }
  }
  EXPECT_GT(compared, 50u);
}

TEST(ProbeGolden, ShapesCountTheParametersOfEveryDecoder) {
  std::size_t counted = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(FATHOM_SOURCE_DIR) / "tests/golden/families")) {
    SCOPED_TRACE(entry.path().filename().string());
    const pretrained::Weights weights(pretrained::open_checkpoint(entry.path()), 1u << 30);
    const pretrained::Layout& layout = weights.layout();
    if (!layout.causal || layout.embedding_width != layout.width) {
      EXPECT_THROW(read_hf_config(entry.path()), Error);  // rather no number than a wrong one
      continue;
    }
    EXPECT_EQ(count_parameters(read_hf_config(entry.path()).shape).total(),
              weights.parameter_count());
    ++counted;
  }
  EXPECT_GT(counted, 25u);
}

}  // namespace
}  // namespace fathom::probe
