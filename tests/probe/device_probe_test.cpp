// A whole probe on a device against the same on the CPU.
#include <gtest/gtest.h>

#include "engine/cuda/module.h"
#include "pretrained/planted_family.h"
#include "pretrained/test_device.h"
#include "probe/device_sweep.h"
#include "probe/probe.h"

namespace fathom::probe {
namespace {

using pretrained::DeviceModel;
using pretrained::planted_config;
using pretrained::planted_ids;
using pretrained::PlantedModel;
using pretrained::PlantedSize;
using pretrained::random_family;
using pretrained::TestDevice;

Window window_of(std::size_t tokens, std::uint64_t seed) {
  Window window;
  window.inputs = planted_ids(tokens, 29, seed);
  window.targets.assign(window.inputs.begin() + 1, window.inputs.end());
  window.targets.push_back(-1);
  return window;
}

/// Windows of two lengths, as lines of ids may have.
ProbeText mixed_text() {
  ProbeText text;
  text.name = "planted";
  for (const std::size_t tokens : {24, 24, 24, 17, 17, 24}) {
    text.windows.push_back(window_of(tokens, 100 + text.windows.size()));
  }
  return text;
}

ProbeResult probe_on(const PlantedModel& planted, std::unique_ptr<engine::Inference> math) {
  pretrained::Weights weights = planted.weights();
  std::unique_ptr<DeviceModel> device;
  if (math) device = std::make_unique<DeviceModel>(weights, std::move(math));
  ProbeOptions options;
  options.threads = 2;
  options.fixed_tokens = true;
  options.device = device.get();
  return probe_model(weights, mixed_text(), "planted", options);
}

void expect_same(const ProbeResult& got, const ProbeResult& want) {
  constexpr double kNats = 5e-5;
  EXPECT_NEAR(got.loss.mean, want.loss.mean, kNats);
  ASSERT_EQ(got.layers.size(), want.layers.size());
  for (std::size_t l = 0; l < want.layers.size(); ++l) {
    const LayerResult &a = got.layers[l], &b = want.layers[l];
    EXPECT_NEAR(a.geometry.influence, b.geometry.influence, 3e-6) << l;
    EXPECT_NEAR(a.geometry.attention_share, b.geometry.attention_share, 1e-5) << l;
    EXPECT_NEAR(a.removal.mean, b.removal.mean, kNats) << l;
    EXPECT_NEAR(a.removal.error, b.removal.error, kNats) << l;
    EXPECT_NEAR(a.attention.mean, b.attention.mean, kNats) << l;
    EXPECT_NEAR(a.ffn.mean, b.ffn.mean, kNats) << l;
    ASSERT_EQ(a.swap.has_value(), b.swap.has_value());
    if (b.swap) {
      EXPECT_NEAR(a.swap->mean, b.swap->mean, kNats) << l;
    }
    ASSERT_EQ(a.shift.has_value(), b.shift.has_value());
    if (b.shift) {
      EXPECT_NEAR(a.shift->mean, b.shift->mean, kNats) << l;
    }
  }
  ASSERT_EQ(got.curves.greedy.size(), want.curves.greedy.size());
  for (std::size_t n = 0; n < want.curves.greedy.size(); ++n) {
    EXPECT_EQ(got.curves.greedy[n].removed, want.curves.greedy[n].removed);
    EXPECT_NEAR(got.curves.greedy[n].loss, want.curves.greedy[n].loss, kNats);
    EXPECT_NEAR(got.curves.random[0][n].loss, want.curves.random[0][n].loss, kNats);
  }
  for (std::size_t l = 0; l < want.lens.size(); ++l) {
    EXPECT_NEAR(got.lens[l].divergence, want.lens[l].divergence, kNats);
  }
  ASSERT_EQ(got.heads.size(), want.heads.size());
  for (std::size_t h = 0; h < want.heads.size(); ++h) {
    EXPECT_EQ(got.heads[h].role, want.heads[h].role);
    EXPECT_NEAR(got.heads[h].scores.previous, want.heads[h].scores.previous, 1e-5);
    EXPECT_NEAR(got.heads[h].contribution, want.heads[h].contribution, 1e-5);
    ASSERT_EQ(got.heads[h].removal.has_value(), want.heads[h].removal.has_value());
    if (want.heads[h].removal) {
      EXPECT_NEAR(got.heads[h].removal->mean, want.heads[h].removal->mean, kNats);
    }
  }
}

class ProbeOnDevice : public testing::TestWithParam<TestDevice> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(ProbeOnDevice, FindsWhatTheCpuFinds) {
  for (const char* type : {"llama", "gpt2", "gpt_neox", "gemma2", "olmo2"}) {
    SCOPED_TRACE(type);
    PlantedSize size;
    if (std::string(type).starts_with("gpt")) size.key_heads = size.heads;
    nlohmann::json config = planted_config(type, size);
    if (std::string(type) == "gemma2") {
      config["sliding_window"] = 7;
      config["query_pre_attn_scalar"] = 8;
    }
    const PlantedModel model = random_family(config);
    expect_same(probe_on(model, make_inference(GetParam())), probe_on(model, nullptr));
  }
}

TEST_P(ProbeOnDevice, AnIdentityLayerCostsExactlyNothing) {
  PlantedModel model = random_family(planted_config("llama"));
  for (const char* part : {"self_attn.o_proj", "mlp.down_proj"}) {
    for (float& w : model.layer(2, part)) w = 0;
  }
  const ProbeResult r = probe_on(model, make_inference(GetParam()));
  EXPECT_EQ(r.layers[2].removal.mean, 0);
  EXPECT_EQ(r.layers[2].attention.mean, 0);
  EXPECT_EQ(r.layers[2].ffn.mean, 0);
  EXPECT_EQ(r.layers[2].geometry.influence, 0);
  EXPECT_EQ(r.layers[2].cls, LayerClass::idle);
  EXPECT_NE(r.layers[1].removal.mean, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, ProbeOnDevice, pretrained::kTestDevices, pretrained::device_name);

TEST(DeviceChunks, HoldWindowsOfOneLengthInEvenShares) {
  pretrained::Weights weights = random_family(planted_config("llama")).weights();
  DeviceModel model(weights, std::make_unique<pretrained::PlainInference>());
  std::vector<Window> windows(11, window_of(24, 1));
  windows[8] = windows[9] = windows[10] = window_of(17, 2);
  SweepControl control;
  control.device = &model;
  EXPECT_EQ(device_chunk_end(control, windows, 0, 4, 3), 8u);
  EXPECT_EQ(device_chunk_end(control, windows, 8, 4, 3), 11u);
  control.memory_bytes = std::uint64_t{7} * 5 * 24 * 32 * 4;  // room for seven windows' streams
  EXPECT_EQ(device_chunk_end(control, windows, 0, 4, 3), 4u);
  control.memory_bytes = 1;
  EXPECT_EQ(device_chunk_end(control, windows, 0, 4, 3), 1u);
}

TEST(DeviceChunks, AModelLargerThanTheDeviceIsProbedAllTheSame) {
  const PlantedModel model = random_family(planted_config("llama"));
  expect_same(probe_on(model, std::make_unique<pretrained::PlainInference>(20000)),
              probe_on(model, nullptr));
}

}  // namespace
}  // namespace fathom::probe
