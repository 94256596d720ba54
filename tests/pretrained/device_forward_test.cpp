// Layers, heads and losses of every family on a device against the CPU's forward pass.
#include "pretrained/device_forward.h"

#include <gtest/gtest.h>

#include "core/counts.h"
#include "pretrained/planted_family.h"
#include "pretrained/test_device.h"

namespace fathom::pretrained {
namespace {

constexpr std::int64_t kTokens = 21, kWindows = 3;
constexpr double kClose = 5e-5;  // of the largest number compared

void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 1e-3, worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
    worst = difference <= worst ? worst : difference;  // a NaN stays
  }
  EXPECT_LE(worst, kClose * largest) << what;
}

/// One model on both sides.
struct BothSides {
  explicit BothSides(const nlohmann::json& config, TestDevice kind)
      : weights(random_family(config).weights()),
        host(weights, kTokens),
        model(weights, make_inference(kind)),
        device(model, host, kWindows) {
    const auto vocab = as_size(weights.layout().vocab);
    for (std::int64_t w = 0; w < kWindows; ++w) {
      const auto ids = planted_ids(as_size(kTokens), vocab, 40 + as_size(w));
      std::vector<float> h(as_size(kTokens * weights.layout().width));
      host.embed(ids, h.data());
      states.insert(states.end(), h.begin(), h.end());
      targets.insert(targets.end(), ids.rbegin(), ids.rend());
    }
    targets[5] = -1;
  }

  std::vector<float> fetch(const DeviceFloats& from, std::size_t count) const {
    std::vector<float> values(count);
    model.math().download(from.data(), std::ssize(values) * 4, values.data());
    return values;
  }

  /// The layer on the CPU, window by window; `middles` as LayerWatch::middle.
  void run_host(std::int64_t layer, const LayerEdit& edit, std::vector<float>& middles) {
    const std::int64_t count = kTokens * weights.layout().width;
    middles.resize(states.size());
    for (std::int64_t w = 0; w < kWindows; ++w) {
      LayerWatch watch;
      watch.middle = middles.data() + w * count;
      host.run_layer(*weights.layer(layer), layer, states.data() + w * count, scratch, edit, watch);
    }
  }

  Weights weights;
  Forward host;
  DeviceModel model;
  DeviceForward device;
  Scratch scratch;
  std::vector<float> states;  // of all windows
  std::vector<data::TokenId> targets;
};

/// A config for each way to build a block, with the features of its family switched on.
std::vector<nlohmann::json> all_configs() {
  std::vector<nlohmann::json> configs;
  for (const std::string& type : family_names()) {
    PlantedSize size;
    const bool grouped = type != "gpt2" && type != "gpt_neox" && type != "opt" && type != "bert" &&
                         type != "roberta";
    if (!grouped) size.key_heads = size.heads;
    nlohmann::json config = planted_config(type, size);
    if (type == "mistral" || type == "gemma2" || type == "gemma3_text") {
      config["sliding_window"] = 7;
    }
    if (type == "gemma2") {
      config["attn_logit_softcapping"] = 5.0;
      config["final_logit_softcapping"] = 3.0;
      config["query_pre_attn_scalar"] = 8;
    }
    if (type == "gemma3_text") config["query_pre_attn_scalar"] = 8;
    configs.push_back(config);
  }
  PlantedSize wide_heads;  // the larger tiles of attention
  wide_heads.width = 192;
  wide_heads.heads = 2;
  wide_heads.key_heads = 1;
  wide_heads.layers = 2;
  configs.push_back(planted_config("llama", wide_heads));
  configs.back()["head_dim"] = 256;
  configs.push_back(planted_config("llama", wide_heads));
  return configs;
}

class OnDevice : public testing::TestWithParam<TestDevice> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(OnDevice, EveryFamilyIsAsOnTheCpu) {
  for (const nlohmann::json& config : all_configs()) {
    SCOPED_TRACE(config.dump());
    BothSides both(config, GetParam());
    const Layout& layout = both.weights.layout();
    DeviceFloats h(both.model.math(), both.states), middle(both.model.math(), both.states);
    for (std::int64_t l = 0; l < layout.depth(); ++l) {
      LayerEdit edit;  // each layer another one
      edit.attention = l != 1;
      edit.ffn = l != 2;
      const std::vector<float> values(as_size(layout.head_size), 0.25f);
      if (l == 3) edit.silent = {{1, nullptr}};
      if (l == 0) edit.silent = {{0, values.data()}, {1, nullptr}};
      std::vector<float> middles;
      both.run_host(l, edit, middles);
      DeviceWatch watch;
      watch.middle = middle.data();
      both.device.run_layer(l, h.data(), edit, watch);
      expect_close(both.fetch(middle, middles.size()), middles, fmt::format("middle of {}", l));
      expect_close(both.fetch(h, both.states.size()), both.states, fmt::format("layer {}", l));
    }
    if (layout.head == HeadKind::none) continue;
    std::vector<float> want(both.targets.size()), got(both.targets.size());
    both.host.losses(both.states.data(), both.targets, both.scratch, want.data());
    both.device.losses(h.data(), both.targets, got.data());
    EXPECT_EQ(got[5], 0);
    expect_close(got, want, "losses");
  }
}

TEST_P(OnDevice, HeadsAreWatchedAsOnTheCpu) {
  PlantedSize size;
  nlohmann::json config = planted_config("gemma2", size);
  config["sliding_window"] = 6;
  config["query_pre_attn_scalar"] = 8;
  BothSides both(config, GetParam());
  const HostedDeviceForward hosted(both.model, both.weights, kTokens);
  const std::int64_t count = kTokens * both.weights.layout().width;
  std::vector<float> mine(both.states.begin(), both.states.begin() + count), theirs = mine;
  for (std::int64_t l = 0; l < 2; ++l) {
    const auto run = [&](const Forward& forward, std::vector<float>& h) {
      std::vector<float> seen, outputs(as_size(kTokens) * size.width), middle(h.size());
      LayerWatch watch;
      watch.middle = middle.data();
      watch.head_outputs = outputs.data();
      watch.heads = [&](std::int64_t, const float* weights) {
        seen.insert(seen.end(), weights, weights + kTokens * kTokens);
      };
      forward.run_layer(*both.weights.layer(l), l, h.data(), both.scratch, {}, watch);
      seen.insert(seen.end(), outputs.begin(), outputs.end());
      seen.insert(seen.end(), middle.begin(), middle.end());
      return seen;
    };
    expect_close(run(hosted, mine), run(both.host, theirs), fmt::format("layer {}", l));
    expect_close(mine, theirs, fmt::format("stream after {}", l));
  }
  std::vector<float> want(4 * size.vocab), got(4 * size.vocab);
  both.host.logits(theirs.data(), 4, both.scratch, want.data());
  hosted.logits(theirs.data(), 4, both.scratch, got.data());
  expect_close(got, want, "logits");
}

INSTANTIATE_TEST_SUITE_P(Devices, OnDevice, kTestDevices, device_name);

TEST(DeviceModel, KeepsWhatFitsAndSendsTheRestAgain) {
  Weights weights = random_llama().weights();
  const auto layer_bytes = static_cast<std::int64_t>(weights.layer_bytes());
  for (const bool roomy : {true, false}) {
    auto math = std::make_unique<PlainInference>((roomy ? 100 : 1) * layer_bytes);
    const PlainInference& told = *math;
    DeviceModel model(weights, std::move(math));
    const int ends = told.matrices_sent();
    for (int round = 0; round < 2; ++round) {
      for (std::int64_t l = 0; l < 4; ++l) model.layer(l);
    }
    EXPECT_EQ(told.matrices_sent() - ends, roomy ? 4 * 4 : 2 * 4 * 4);
  }
}

}  // namespace
}  // namespace fathom::pretrained
