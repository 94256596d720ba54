// The forward pass of this room and the training engine, two programs for one function.
#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/cpu/cpu_executor.h"
#include "model/transformer.h"
#include "pretrained/forward.h"
#include "probe/own_run.h"
#include "scratch_folder.h"
#include "train/attention_maps.h"
#include "train/weights.h"

namespace fathom::probe {
namespace {

using model::ModelSpec;

ModelSpec gpt2_spec() {
  ModelSpec spec;
  spec.layers = 3;
  spec.width = 24;
  spec.heads = 3;
  spec.vocab = 31;
  spec.context = 20;
  spec.activation = model::FeedForward::gelu_tanh;
  return spec;
}

ModelSpec llama_spec() {
  ModelSpec spec = gpt2_spec();
  spec.heads = 4;
  spec.key_heads = 2;
  spec.head_size = 8;
  spec.ffn = 40;
  spec.tied = false;
  spec.biases = false;
  spec.norm_kind = engine::NormKind::rms;
  spec.activation = model::FeedForward::swiglu;
  spec.positions = model::Positions::rotary;
  return spec;
}

train::Weights random_weights(const ModelSpec& spec) {
  const auto built = model::build_transformer(spec, {});
  train::Weights weights;
  weights.spec = spec;
  for (const model::Parameter& parameter : built->parameters) {
    std::vector<float> values = model::initial_values(*built, parameter, 5);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 6 * values[i] + 0.1f * std::sin(static_cast<float>(i + parameter.name.size()));
    }
    weights.parameters[parameter.name] = values;
  }
  return weights;
}

std::vector<std::int32_t> some_tokens(const ModelSpec& spec) {
  std::vector<std::int32_t> ids;
  for (std::int64_t t = 0; t < spec.context; ++t) {
    ids.push_back(static_cast<std::int32_t>((7 * t * t + 3 * t) % spec.vocab));
  }
  return ids;
}

std::vector<float> engine_logits(const train::Weights& weights) {
  const ModelSpec& spec = weights.spec;
  model::BuildOptions options;
  options.purpose = model::Purpose::logits;
  const auto built = model::build_transformer(spec, options);
  engine::CpuExecutor executor(built->plan, {});
  for (const model::Parameter& parameter : built->parameters) {
    executor.write(parameter.id, weights.parameters.at(parameter.name));
  }
  executor.run(engine::Program::refresh, {});
  executor.write_tokens(built->tokens, some_tokens(spec));
  executor.run(engine::Program::evaluate, {});
  std::vector<float> logits(static_cast<std::size_t>(spec.context * spec.vocab));
  executor.read(built->logits, logits);
  return logits;
}

std::vector<float> own_logits(const std::filesystem::path& folder, const ModelSpec& spec) {
  pretrained::Weights weights(open_model(folder), 1u << 30);
  const pretrained::Forward forward(weights, spec.context);
  pretrained::Scratch scratch;
  std::vector<float> h(static_cast<std::size_t>(spec.context * spec.width));
  forward.embed(some_tokens(spec), h.data());
  for (std::int64_t l = 0; l < spec.layers; ++l) {
    forward.run_layer(*weights.layer(l), l, h.data(), scratch);
  }
  std::vector<float> logits(static_cast<std::size_t>(spec.context * spec.vocab));
  forward.logits(h.data(), spec.context, scratch, logits.data());
  return logits;
}

void expect_equal(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  float largest = 0;
  for (const float x : a) largest = std::max(largest, std::abs(x));
  EXPECT_GT(largest, 0.1f);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5 * largest) << i;
}

TEST(EngineAgreement, OwnRunsOfEveryKindHaveTheEnginesLogits) {
  std::vector<ModelSpec> specs{gpt2_spec(), llama_spec(), gpt2_spec(), llama_spec(), gpt2_spec()};
  specs[2].parametrisation = model::Parametrisation::completep;
  specs[2].base_width = 8;
  specs[2].base_layers = 1;
  specs[3].window = 6;
  specs[4].norm = model::NormPlace::post;
  specs[4].activation = model::FeedForward::relu;
  for (const ModelSpec& spec : specs) {
    const ScratchFolder folder;
    const train::Weights weights = random_weights(spec);
    train::save_weights(weights, folder / "model");
    expect_equal(engine_logits(weights), own_logits(folder / "model", spec));
  }
}

TEST(EngineAgreement, ExportedFoldersHaveTheEnginesLogits) {
  const std::pair<ModelSpec, model::HfFormat> cases[]{{gpt2_spec(), model::HfFormat::gpt2},
                                                      {llama_spec(), model::HfFormat::llama}};
  for (const auto& [spec, format] : cases) {
    const ScratchFolder folder;
    const train::Weights weights = random_weights(spec);
    train::export_weights(weights, format, folder / "hf");
    expect_equal(engine_logits(weights), own_logits(folder / "hf", spec));
  }
}

/// The weights of every head, from the training engine's queries and keys and from the probe's own
/// forward pass.
TEST(EngineAgreement, AttentionMapsAreTheSame) {
  const ScratchFolder folder;
  const ModelSpec spec = gpt2_spec();
  train::Weights own = random_weights(spec);
  const std::vector<std::int32_t> ids = some_tokens(spec);
  std::vector<std::vector<float>> maps;
  train::watch_attention(own, ids, 1,
                         [&](std::size_t, std::int64_t, std::int64_t, std::span<const float> map) {
                           maps.emplace_back(map.begin(), map.end());
                         });
  ASSERT_EQ(maps.size(), 9u);  // 3 layers of 3 heads
  save_weights(own, folder / "model");
  pretrained::Weights weights(open_model(folder / "model"), 1u << 30);
  const pretrained::Forward forward(weights, spec.context);
  pretrained::Scratch scratch;
  std::vector<float> h(static_cast<std::size_t>(spec.context * spec.width));
  forward.embed(ids, h.data());
  std::size_t next = 0;
  for (std::int64_t l = 0; l < spec.layers; ++l) {
    pretrained::LayerWatch watch;
    watch.heads = [&](std::int64_t, const float* map) {
      for (std::size_t i = 0; i < maps[next].size(); ++i) EXPECT_NEAR(maps[next][i], map[i], 1e-4);
      ++next;
    };
    forward.run_layer(*weights.layer(l), l, h.data(), scratch, {}, watch);
  }
  EXPECT_EQ(next, maps.size());
}

TEST(EngineAgreement, AttentionMapsKeepToTheirPattern) {
  ModelSpec spec = gpt2_spec();
  spec.feed_forward = false;
  spec.keys = model::KeySource::smeared;
  spec.window = 3;
  const train::Weights own = random_weights(spec);
  const auto T = static_cast<std::size_t>(spec.context);
  std::size_t watched = 0;
  train::watch_attention(own, some_tokens(spec), 1,
                         [&](std::size_t, std::int64_t, std::int64_t, std::span<const float> map) {
                           for (std::size_t i = 0; i < T; ++i) {
                             double sum = 0;
                             for (std::size_t j = 0; j < T; ++j) {
                               sum += map[i * T + j];
                               if (j > i || j + 3 <= i) {
                                 EXPECT_EQ(map[i * T + j], 0);
                               }
                             }
                             EXPECT_NEAR(sum, 1, 1e-5);
                           }
                           ++watched;
                         });
  EXPECT_EQ(watched, 9u);
  spec.positions = model::Positions::rotary;
  EXPECT_THROW(train::watch_attention(random_weights(spec), some_tokens(spec), 1, {}), ConfigError);
}

}  // namespace
}  // namespace fathom::probe
