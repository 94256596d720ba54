// Patterns of attention: the tables against the definition, hand counts, and that kernels do not
// touch blocks nobody sees.
#include "engine/ops/attention/attention_pattern.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/cpu/cpu_executor.h"
#include "engine/gpu_path.h"
#include "engine/op_case.h"

namespace fathom::engine {
namespace {

AttentionShape pattern_shape(std::int64_t context, MaskKind mask, std::int64_t window,
                             std::int64_t global_tokens, std::int64_t random_blocks,
                             std::int64_t block, std::int64_t stride = 0) {
  AttentionShape shape{.context = context, .head_size = 16, .mask = mask, .window = window};
  shape.scale = 0.25f;
  shape.stride = stride;
  shape.global_tokens = global_tokens;
  shape.random_blocks = random_blocks;
  shape.block = block;
  return shape;
}

TEST(AttentionPattern, TablesAreTheDefinition) {
  for (const MaskKind mask : {MaskKind::causal, MaskKind::bidirectional, MaskKind::strict}) {
    for (const AttentionShape& shape :
         {pattern_shape(150, mask, 3, 2, 2, 16), pattern_shape(128, mask, 64, 0, 1, 64),
          pattern_shape(70, mask, 1, 0, 0, 64, 9)}) {
      const AttentionPattern pattern(shape);
      std::int64_t pairs = 0;
      for (std::int64_t i = 0; i < 64 * pattern.blocks(); ++i) {
        for (std::int64_t j = 0; j < 64 * pattern.blocks(); ++j) {
          const bool inside = i < shape.context && j < shape.context;
          const std::size_t word = static_cast<std::size_t>(i * pattern.blocks() + j / 64);
          const bool bit = (pattern.words()[word] >> (j % 64) & 1) != 0;
          ASSERT_EQ(bit, inside && shape.allows(i, j)) << i << " " << j;
          pairs += static_cast<std::int64_t>(bit);
        }
      }
      EXPECT_EQ(shape.allowed_pairs(), pairs);
    }
  }
}

TEST(AttentionPattern, HandCounts) {
  const auto both = MaskKind::bidirectional, causal = MaskKind::causal;
  // Token 0 sees 8, the others themselves and token 0.
  EXPECT_EQ(pattern_shape(8, both, 1, 1, 0, 64).allowed_pairs(), 8 + 7 * 2);
  // Distances 0 and 2, 4, 6 back: 1 1 2 2 3 3 4 4.
  EXPECT_EQ(pattern_shape(8, causal, 1, 0, 0, 64, 2).allowed_pairs(), 20);
  // 8 blocks of 4: itself (window 1) and a whole block elsewhere; causal: the first block has none.
  EXPECT_EQ(pattern_shape(32, both, 1, 0, 1, 4).allowed_pairs(), 32 + 8 * 16);
  EXPECT_EQ(pattern_shape(32, causal, 1, 0, 1, 4).allowed_pairs(), 32 + 7 * 16);
  // No more blocks than there are.
  EXPECT_EQ(pattern_shape(32, both, 1, 0, 99, 4).allowed_pairs(), 32 + 8 * 7 * 16);
  // 16 blocks of 64 with a band of three on the diagonal, the first row and the first column.
  EXPECT_EQ(AttentionPattern(pattern_shape(1024, both, 2, 1, 0, 64)).visible_blocks(),
            (3 * 16 - 2) + 2 * 14);
}

TEST(AttentionPattern, LayersDrawOtherBlocks) {
  AttentionShape first = pattern_shape(512, MaskKind::bidirectional, 1, 0, 2, 16), second = first;
  second.seed = 2;
  EXPECT_NE(AttentionPattern(first).words(), AttentionPattern(second).words());
}

/// Every value of the last block of keys is NaN. A kernel that multiplied them by weights of zero
/// would hand NaNs to all queries; the ones whose blocks see nothing there stay finite, forward and
/// backward.
void expect_skips_hidden_blocks(const OpCase& op_case, const AttentionShape& shape,
                                const BuiltCase& built, Executor& executor) {
  fill(executor, op_case);
  const TensorId x = built.plan.find("qkv");
  std::vector<float> qkv = read_all(executor, x);
  const auto cols = static_cast<std::size_t>(shape.qkv_cols());
  for (std::size_t t = 448; t < 512; ++t) {
    for (std::size_t c = 2 * cols / 3; c < cols; ++c) {
      qkv[t * cols + c] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  executor.write(x, qkv);
  executor.run(Program::train, case_scalars());
  const std::vector<float> y = read_all(executor, built.y);
  const std::vector<float> d = read_all(executor, built.plan.gradient(x));
  std::size_t poisoned = 0;
  for (std::size_t t = 0; t < 512; ++t) {
    const bool sees = t >= 384;  // blocks 6 and 7: the window reaches one block back
    for (std::size_t c = 0; c < 16; ++c) {
      poisoned += static_cast<std::size_t>(std::isnan(y[t * 16 + c]));
      if (!sees) {
        EXPECT_TRUE(std::isfinite(y[t * 16 + c])) << t;
        EXPECT_TRUE(std::isfinite(d[t * cols + c])) << t;
      }
    }
  }
  EXPECT_GT(poisoned, 0u);  // the window's own block is not skipped
}

struct SkipCase {
  AttentionShape shape = pattern_shape(512, MaskKind::bidirectional, 8, 0, 0, 64, 1024);
  OpCase op_case{"skip", [this](StepPlan& plan, TensorId& y) {
                   const TensorId x = plan.parameter("qkv", 512, shape.qkv_cols());
                   const TensorId zero = plan.parameter("zero", 512, shape.qkv_cols());
                   const TensorId qkv =
                       plan.activation("qkv sum", DType::f32, 512, shape.qkv_cols());
                   plan.append(Residual{x, zero, qkv, 1.0f, 0.0f});
                   y = plan.activation("y", DType::f32, 512, 16);
                   const TensorId stats = plan.activation("stats", DType::f32, 1, 512);
                   plan.append(Attention{qkv, y, stats, shape});
                 }};
};

TEST(AttentionPattern, CpuSkipsHiddenBlocks) {
  const SkipCase skip;
  const BuiltCase built(skip.op_case);
  CpuExecutor cpu(built.plan, {.threads = 1});
  expect_skips_hidden_blocks(skip.op_case, skip.shape, built, cpu);
}

TEST(AttentionPattern, CudaSkipsHiddenBlocks) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  SkipCase skip;
  const CudaOptions options;
  skip.op_case.target = cuda_target(options);
  const BuiltCase built(skip.op_case);
  const auto cuda = cuda_module().make_executor(built.plan, options);
  expect_skips_hidden_blocks(skip.op_case, skip.shape, built, *cuda);
}

}  // namespace
}  // namespace fathom::engine
