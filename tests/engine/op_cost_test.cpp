#include "engine/plan/op_cost.h"

#include <gtest/gtest.h>

namespace fathom::engine {
namespace {

class OpCost : public testing::Test {
 protected:
  TensorId tensor(std::int64_t rows, std::int64_t cols, DType type = DType::f32) {
    return tensors_.add({"t", type, rows, cols, Storage::activation, -1, {}});
  }
  Tensors tensors_;
};

TEST_F(OpCost, GemmsCountTwoForEachMultiplication) {
  const TensorId x = tensor(5, 3), w = tensor(7, 3), y = tensor(5, 7);
  EXPECT_EQ(flops_of(Linear{x, w, {}, y}, tensors_), 2 * 5 * 3 * 7);
  EXPECT_EQ(bytes_of(Linear{x, w, {}, y}, tensors_), 4 * (15 + 21 + 35));
  LinearBackward back{y, x, w, x, w, {}};
  EXPECT_EQ(flops_of(back, tensors_), 2 * 2 * 5 * 3 * 7);
  back.dx = {};
  EXPECT_EQ(flops_of(back, tensors_), 2 * 5 * 3 * 7);
  EXPECT_EQ(bytes_of(back, tensors_), 4 * (35 + 15 + 21));  // the weight itself is not read
  back.d_weight = {};
  EXPECT_EQ(flops_of(back, tensors_), 0);
}

TEST_F(OpCost, AFusedOpMovesNothingThatStaysInRegisters) {
  const auto bf16 = DType::bf16;
  const TensorId x = tensor(5, 3, bf16), w = tensor(7, 3, bf16), u = tensor(5, 7, bf16);
  const TensorId y = tensor(5, 7, bf16), slopes = tensor(5, 7, DType::u8);
  const LinearThenActivation fused{{x, w, {}, u}, {u, y, ActivationKind::gelu, slopes}};
  EXPECT_EQ(flops_of(fused, tensors_), 2 * 5 * 3 * 7);
  EXPECT_EQ(bytes_of(fused, tensors_), 2 * (15 + 21 + 35) + 35);
}

TEST_F(OpCost, AllowedPairsAreThoseTheMaskAllows) {
  for (const MaskKind mask : {MaskKind::causal, MaskKind::bidirectional, MaskKind::strict}) {
    for (const std::int64_t window : {0, 1, 3, 20}) {
      AttentionShape shape{.context = 9, .mask = mask, .window = window};
      std::int64_t pairs = 0;
      for (std::int64_t i = 0; i < 9; ++i) {
        for (std::int64_t j = 0; j < 9; ++j) pairs += shape.allows(i, j);
      }
      EXPECT_EQ(shape.allowed_pairs(), pairs) << window;
    }
  }
}

}  // namespace
}  // namespace fathom::engine
