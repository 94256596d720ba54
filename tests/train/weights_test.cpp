// Models on disk in their three forms, evaluation and generation.
#include "train/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "data/prepare.h"
#include "model/transformer.h"
#include "scratch_folder.h"

namespace fathom::train {
namespace {

namespace fs = std::filesystem;

model::ModelSpec byte_model() {
  model::ModelSpec spec;
  spec.width = 16;
  spec.vocab = 257;
  spec.context = 16;
  spec.activation = model::FeedForward::gelu_tanh;
  return spec;
}

Weights random_weights(std::uint64_t seed = 3) {
  Weights weights;
  weights.spec = byte_model();
  const auto model = model::build_transformer(weights.spec, {});
  for (const model::Parameter& parameter : model->parameters) {
    weights.parameters[parameter.name] = model::initial_values(*model, parameter, seed);
  }
  weights.tokenizer = data::make_byte_tokenizer();
  return weights;
}

class WeightsTest : public testing::Test {
 protected:
  data::TokenSet corpus() {
    std::string text;
    for (int i = 0; i < 100; ++i) {
      text += "= Article " + std::to_string(i) + " =\nlines of text, number " +
              std::to_string(i * i) + ", and a few more words\n\n";
    }
    std::ofstream(folder_ / "text") << text;
    data::PrepareRequest request;
    request.sources.push_back({folder_ / "text", {}, ""});
    request.output = folder_ / "tokens";
    request.split = {0.2, 0.2, 0};
    request.tokenizer.kind = "bytes";
    data::prepare(request);
    return data::TokenSet(folder_ / "tokens");
  }

  ScratchFolder scratch_;
  fs::path folder_ = scratch_.path();
};

std::vector<data::TokenId> continuation(const Weights& weights, const GenerationOptions& options,
                                        std::vector<data::TokenId> prompt = {72, 105}) {
  std::vector<data::TokenId> out;
  generate(weights, std::move(prompt), options, [&](data::TokenId id) { out.push_back(id); });
  return out;
}

TEST_F(WeightsTest, ModelFoldersRoundTrip) {
  const Weights weights = random_weights();
  save_weights(weights, folder_ / "m");
  const Weights back = load_weights(folder_ / "m");
  EXPECT_EQ(back.parameters, weights.parameters);
  ASSERT_NE(back.tokenizer, nullptr);
  EXPECT_EQ(back.tokenizer->hash(), weights.tokenizer->hash());
}

TEST_F(WeightsTest, ExportedModelsLoadAsTheyAre) {
  const Weights weights = random_weights();
  model::export_hf(weights.spec, weights.parameters, model::HfFormat::gpt2, folder_ / "hf");
  const Weights back = load_weights(folder_ / "hf");
  EXPECT_EQ(back.tokenizer, nullptr);
  EXPECT_NE(back.tokenizer_note, "");
  GenerationOptions greedy;
  greedy.temperature = 0;
  greedy.tokens = 12;
  EXPECT_EQ(continuation(back, greedy), continuation(weights, greedy));
}

TEST_F(WeightsTest, FoldersWithoutAModelAreRefused) {
  EXPECT_THROW(load_weights(folder_), DataError);
  EXPECT_THROW(load_weights(folder_ / "missing"), DataError);
  save_weights(random_weights(), folder_ / "m");
  std::ofstream(folder_ / "m" / "model.safetensors") << "not a tensor file";
  EXPECT_THROW(load_weights(folder_ / "m"), DataError);
  Weights other = random_weights();
  save_weights(other, folder_ / "m");
  std::ofstream(folder_ / "m" / "model.toml") << "layers = 3\nwidth = 16\nvocab = 257\n";
  EXPECT_THROW(load_weights(folder_ / "m"), DataError);
}

TEST_F(WeightsTest, AnUntrainedModelKnowsNothing) {
  // Near-zero logits: ln 257 nats a byte, log2 257 bits a byte, end-of-document tokens aside.
  const data::TokenSet tokens = corpus();
  const WeightsEvaluation result =
      evaluate_weights(random_weights(), tokens, data::Split::valid, 100000, 1);
  EXPECT_NEAR(result.loss, std::log(257.0), 0.02);
  EXPECT_NEAR(result.bits_per_byte, std::log2(257.0), 0.4);
  EXPECT_GT(result.tokens, 0u);
  Weights small = random_weights();
  small.spec.vocab = 100;
  EXPECT_THROW(evaluate_weights(small, tokens, data::Split::valid, 1000, 1), ConfigError);
}

TEST_F(WeightsTest, GenerationIsAFunctionOfItsSeed) {
  const Weights weights = random_weights();
  GenerationOptions options;
  options.tokens = 40;  // past the context of 16
  const auto first = continuation(weights, options);
  EXPECT_EQ(first.size(), 40u);
  EXPECT_EQ(continuation(weights, options), first);
  options.seed = 2;
  EXPECT_NE(continuation(weights, options), first);
  options.top_k = 1;
  const auto top = continuation(weights, options);
  options.temperature = 0;
  EXPECT_EQ(continuation(weights, options), top);
}

TEST_F(WeightsTest, ImpossibleGenerationIsRefused) {
  const Weights weights = random_weights();
  GenerationOptions options;
  EXPECT_THROW(continuation(weights, options, {}), ConfigError);
  EXPECT_THROW(continuation(weights, options, {300}), ConfigError);
  options.temperature = -1;
  EXPECT_THROW(continuation(weights, options), ConfigError);
  options = {};
  options.tokens = 0;
  EXPECT_THROW(continuation(weights, options), ConfigError);
  Weights bidirectional = random_weights();
  bidirectional.spec.mask = engine::MaskKind::bidirectional;
  EXPECT_THROW(continuation(bidirectional, {}), ConfigError);
}

}  // namespace
}  // namespace fathom::train
