// Memory per GPU against hand counts.
#include "shape/sharding.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "shape/memory.h"
#include "shape/parameters.h"

namespace fathom {
namespace {

/// L=4, D=8, 2 heads of 4, F=16 gated, V=32, T=4, tied, RMSNorm: 4 x (256 + 384) matrices, nine
/// norms of 8, an embedding of 256.
Shape tiny_gated() {
  ShapeRequest request = parse_depth_by_width("4x8");
  request.heads = 2;
  request.ffn = 16;
  request.gated = true;
  request.vocab = 32;
  request.context = 4;
  return complete(request);
}

constexpr double kMatrices = 4 * (256 + 384);
constexpr double kNorms = 9 * 8;
constexpr double kEmbedding = 32 * 8;
constexpr double kTotal = kMatrices + kNorms + kEmbedding;
/// One layer, one token: 2D + 2D, q k v 2 x 24, out 2 x 8, statistics 4 x 2, 2D + 2D, 6F.
constexpr double kLayer = 32 + 48 + 16 + 8 + 32 + 96;

TEST(Sharding, OneGpuIsTheUnshardedCount) {
  const DeviceMemory memory = count_device_memory(tiny_gated(), {});
  EXPECT_DOUBLE_EQ(memory.weights + memory.gradients + memory.optimizer, 16 * kTotal);
  EXPECT_DOUBLE_EQ(memory.activations, 4 * (4 * kLayer + 2 * 2 * 8));
  EXPECT_DOUBLE_EQ(memory.logits, 4 * 4 * 32);
  EXPECT_DOUBLE_EQ(memory.total(), count_training_memory(tiny_gated(), 4).total());
}

TEST(Sharding, EachStageDividesOneMorePart) {
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    const DeviceMemory memory =
        count_device_memory(tiny_gated(), {.gpus = 8, .zero = stage, .micro_batch = 1});
    EXPECT_DOUBLE_EQ(memory.optimizer, 12 * kTotal / (stage >= 1 ? 8 : 1)) << stage;
    EXPECT_DOUBLE_EQ(memory.gradients, 2 * kTotal / (stage >= 2 ? 8 : 1)) << stage;
    EXPECT_DOUBLE_EQ(memory.weights, 2 * kTotal / (stage >= 3 ? 8 : 1)) << stage;
    // One layer gathered: (2560 + 64) / 4 parameters.
    EXPECT_DOUBLE_EQ(memory.gathered, stage == 3 ? 2 * (kMatrices + 64) / 4 : 0) << stage;
  }
}

TEST(Sharding, TensorParallelismDividesMatricesAndActivations) {
  const DeviceMemory memory = count_device_memory(tiny_gated(), {.gpus = 2, .tensor = 2});
  EXPECT_DOUBLE_EQ(memory.weights, 2 * ((kMatrices + kEmbedding) / 2 + kNorms));
  EXPECT_DOUBLE_EQ(memory.activations, 2 * (4 * kLayer + 2 * 2 * 8));
  EXPECT_DOUBLE_EQ(memory.logits, 2 * 4 * 32);
}

TEST(Sharding, TheHeavierPipelineStageCounts) {
  // Two stages of two layers. Last: half the layers, the tied head's copy, the final norm, one
  // micro-batch, the logits. First: half the layers, the embedding, two micro-batches in flight.
  const double half = kMatrices / 2 + 32;
  const double first = 16 * (half + kEmbedding) + 4 * (2 * 2 * kLayer + 16);
  const double last = 16 * (half + kEmbedding + 8) + 4 * (2 * kLayer + 16) + 4 * 4 * 32;
  const DeviceMemory memory = count_device_memory(tiny_gated(), {.gpus = 2, .pipeline = 2});
  EXPECT_DOUBLE_EQ(memory.total(), std::max(first, last));
}

TEST(Sharding, RecomputationKeepsInputsAndOneLayer) {
  const DeviceMemory memory =
      count_device_memory(tiny_gated(), {.micro_batch = 3, .recompute = true});
  EXPECT_DOUBLE_EQ(memory.activations, 12 * (4 * 16 + kLayer + 2 * 2 * 8));
}

TEST(Sharding, FindsTheLeastChangeThatFits) {
  Hardware gpu = find_hardware("h200");
  gpu.memory_bytes = 16 * kTotal / 4 / kUsableMemory;
  const auto found = find_fitting(tiny_gated(), {.gpus = 4}, gpu);
  ASSERT_TRUE(found);
  EXPECT_TRUE(fits_in_memory(count_device_memory(tiny_gated(), *found), gpu));
  EXPECT_GT(found->zero, 0);
  gpu.memory_bytes = 1e12;
  EXPECT_EQ(find_fitting(tiny_gated(), {.gpus = 4}, gpu)->zero, 0);
  gpu.memory_bytes = 10;
  EXPECT_FALSE(find_fitting(tiny_gated(), {.gpus = 4}, gpu));
}

TEST(Sharding, RefusesWhatDoesNotDivide) {
  EXPECT_THROW(count_device_memory(tiny_gated(), {.gpus = 3, .tensor = 2}), ConfigError);
  EXPECT_THROW(count_device_memory(tiny_gated(), {.gpus = 3, .pipeline = 3}), ConfigError);
  EXPECT_THROW(count_device_memory(tiny_gated(), {.zero = 4}), ConfigError);
}

}  // namespace
}  // namespace fathom
