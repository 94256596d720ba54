// FLOPs, memory and modelled times against hand counts.
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "scratch_folder.h"
#include "shape/catalogue.h"
#include "shape/flops.h"
#include "shape/hardware.h"
#include "shape/memory.h"
#include "shape/parameters.h"
#include "shape/timing.h"

namespace fathom {
namespace {

Shape tiny() {
  ShapeRequest request;
  request.layers = 2;
  request.width = 4;
  request.heads = 2;
  request.vocab = 10;
  request.context = 3;
  return complete(request);
}

TEST(Flops, HandCountWithCausalAttention) {
  const FlopCount count = count_flops(tiny());
  // Blocks: 2 layers of 12*16 weights, 2 FLOPs each; head 2*4*10; attention: the three tokens see
  // 1, 2, 3 positions, 2 on average; per position and layer 4 * D FLOPs.
  const double blocks = 2 * 2 * 192.0;
  const double head = 80;
  const double attention = 2 * 4 * 4 * 2.0;
  EXPECT_DOUBLE_EQ(count.forward_per_token, blocks + head + attention);
  EXPECT_DOUBLE_EQ(count.train_per_token, 3 * (blocks + head + attention));
  EXPECT_DOUBLE_EQ(count.train_recompute_per_token, 4 * (blocks + attention) + 3 * head);
  EXPECT_DOUBLE_EQ(count_flops(tiny(), AttentionSpan::full).forward_per_token,
                   blocks + head + 2 * 4 * 4 * 3.0);
}

TEST(Flops, CausalSumOverTheSequenceEqualsTokenByTokenDecoding) {
  const Shape shape = tiny();
  double decoded = 0;
  for (int t = 0; t < 3; ++t) decoded += decode_flops(shape, t);
  EXPECT_DOUBLE_EQ(decoded, 3 * count_flops(shape).forward_per_token);
}

TEST(Flops, RealValuedFormAgreesWithTheCount) {
  EXPECT_DOUBLE_EQ(train_flops_per_token(2, 4, 12, 10, 3), count_flops(tiny()).train_per_token);
}

TEST(Memory, HandCount) {
  const Shape shape = tiny();
  const double parameters = static_cast<double>(count_parameters(shape).total());
  // Per token and layer: 32 D + 4 H for plain heads and F = 4 D.
  EXPECT_DOUBLE_EQ(activation_bytes_per_token_layer(shape), 32 * 4 + 4 * 2);
  const TrainingMemory memory = count_training_memory(shape, 6);
  EXPECT_DOUBLE_EQ(memory.weights + memory.gradients + memory.optimizer, 16 * parameters);
  EXPECT_DOUBLE_EQ(memory.activations, 6 * (2 * 136 + 16.0));
  EXPECT_DOUBLE_EQ(memory.activations_recompute, 6 * (2 * 8 + 136 + 16.0));
  EXPECT_DOUBLE_EQ(memory.logits, 6 * 4 * 10);
}

TEST(Memory, KvCacheOfLlama3) {
  // 2 (k and v) * 32 layers * 8 kv heads * 128 * 2 bytes = 131072.
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(find_published("Llama-3-8B").shape), 131072);
}

TEST(Tiles, EfficiencyByHand) {
  // 132 tiles of 128x256 fill 132 multiprocessors once: 12 x 11 tiles.
  const TileEfficiency full = tile_efficiency(12 * 128, 11 * 256, 132);
  EXPECT_DOUBLE_EQ(full.product(), 1);
  // One more column of output opens a new column of tiles and a second wave.
  EXPECT_LT(tile_efficiency(12 * 128, 11 * 256 + 1, 132).product(), 0.9);
}

TEST(Hardware, ProfilesAndOwnFiles) {
  EXPECT_EQ(hardware_names().size(), 5u);
  const Hardware h200 = find_hardware("H200");
  EXPECT_DOUBLE_EQ(h200.peak_flops, 989e12);
  EXPECT_NEAR(h200.matmul_rate(), 790e12, 2e12);
  EXPECT_THROW(find_hardware("h20"), ConfigError);
  EXPECT_THROW(find_hardware("missing.toml"), DataError);

  const ScratchFolder folder;
  const std::string path = folder / "own_gpu.toml";
  std::ofstream(path) << "peak_tflops = 100\nbandwidth_gbs = 1000\nmemory_gb = 48\n"
                         "multiprocessors = 64\ntrain_layer_fixed_us = 30\n"
                         "decode_layer_fixed_us = 8\n";
  EXPECT_EQ(find_hardware(path).multiprocessors, 64);
  std::ofstream(path) << "peak_tflop = 100\n";
  EXPECT_THROW(find_hardware(path), ConfigError);
  std::ofstream(path) << "peak_tflops = -1\n";
  EXPECT_THROW(find_hardware(path), ConfigError);
  for (const char* odd : {"0.5", "0", "nan", "1e300", "64.5"}) {
    std::ofstream(path) << "peak_tflops = 100\nbandwidth_gbs = 1000\nmemory_gb = 48\n"
                           "train_layer_fixed_us = 30\ndecode_layer_fixed_us = 8\n"
                           "multiprocessors = "
                        << odd << "\n";
    EXPECT_THROW(find_hardware(path), ConfigError) << odd;
  }
}

TEST(Decode, FixedPlusBytesByHand) {
  Hardware machine = find_hardware("h200");
  machine.bandwidth = 1e12;
  machine.achievable_bandwidth = 1;
  machine.decode_layer_fixed_seconds = 1e-5;
  const Shape shape = find_published("Llama-2-7b").shape;
  const DecodeTime time = model_decode_time(shape, machine, 100);
  const ParameterCount count = count_parameters(shape);
  EXPECT_DOUBLE_EQ(time.fixed, 32e-5);
  EXPECT_DOUBLE_EQ(time.weights,
                   2.0 * static_cast<double>(count.non_embedding() + count.head) / 1e12);
  EXPECT_DOUBLE_EQ(time.cache, 100.0 * 2 * 32 * 4096 * 2 / 1e12);
  // 12 D^2 * 2 bytes / 1e12 = 1e-5 s at D = 645.5.
  EXPECT_NEAR(latency_crossover_width(machine), 645.5, 0.1);
}

TEST(StepTime, NoFasterThanItsFlopsAndSlowerWhenNarrow) {
  const Hardware h200 = find_hardware("h200");
  ShapeRequest wide;
  wide.layers = 6;
  wide.width = 2048;
  ShapeRequest narrow;
  narrow.layers = 96;
  narrow.width = 512;  // the same 12 L D^2
  const Shape a = complete(wide);
  const Shape b = complete(narrow);
  const StepTime wide_time = model_step_time(a, h200, 65536);
  const StepTime narrow_time = model_step_time(b, h200, 65536);
  EXPECT_GT(wide_time.total(), count_flops(a).train_per_token * 65536 / h200.matmul_rate());
  EXPECT_GT(narrow_time.total(), 1.5 * wide_time.total());
  EXPECT_LE(wide_time.matmul_efficiency, 1);
}

}  // namespace
}  // namespace fathom
