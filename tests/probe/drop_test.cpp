// Pruned folders: they reload and have the loss that was predicted.
#include "probe/drop.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "pretrained/planted_folder.h"
#include "scratch_folder.h"

namespace fathom::probe {
namespace {

using pretrained::PlantedModel;

std::vector<Window> windows() {
  std::vector<Window> list;
  for (std::size_t w = 0; w < 3; ++w) {
    Window window;
    window.inputs = pretrained::planted_ids(20, 29, w);
    window.targets.assign(window.inputs.begin() + 1, window.inputs.end());
    window.targets.push_back(-1);
    list.push_back(window);
  }
  return list;
}

TEST(Drop, TheWrittenFolderHasThePredictedLoss) {
  const ScratchFolder folder;
  const auto source = folder / "model", target = folder / "pruned";
  std::filesystem::create_directories(source);
  PlantedModel model = pretrained::random_llama();
  model.config["layer_types"] = {"full_attention", "sliding_attention", "full_attention",
                                 "sliding_attention"};
  model.config["sliding_window"] = 5;
  model.config["model_type"] = "mistral";
  write_planted(model, source);
  folder.write("model/tokenizer_config.json", "{}");
  pretrained::Weights weights(pretrained::open_checkpoint(source), 1u << 30);
  Sweep sweep(weights, {});
  const auto text = windows();
  const DropCost cost = measure_drop(sweep, text, {0, 2});
  write_pruned(source, {0, 2}, target);
  EXPECT_TRUE(std::filesystem::exists(target / "tokenizer_config.json"));
  pretrained::Weights pruned(pretrained::open_checkpoint(target), 1u << 30);
  EXPECT_EQ(pruned.layout().depth(), 2);
  EXPECT_EQ(pruned.layout().layers[0].window, 5);
  Sweep again(pruned, {});
  const DropCost reloaded = measure_drop(again, text, {0});
  EXPECT_EQ(reloaded.before.mean, cost.after.mean);
  EXPECT_NEAR(cost.after.mean - cost.before.mean, cost.cost.mean, 1e-9);
}

TEST(Drop, ListsAreParsedAndChecked) {
  EXPECT_EQ(parse_layers("0,3-5", 8), (std::vector<std::int64_t>{0, 3, 4, 5}));
  EXPECT_THROW(parse_layers("8", 8), ConfigError);
  EXPECT_THROW(parse_layers("x", 8), ConfigError);
  EXPECT_THROW(parse_layers("0-7", 8), ConfigError);
}

}  // namespace
}  // namespace fathom::probe
