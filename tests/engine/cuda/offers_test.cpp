// What hopper_offers() says fuses is what the kernels can do: by shapes, without a GPU.
#include <gtest/gtest.h>

#include "engine/cuda/gemm/gemm_activation.h"
#include "engine/cuda/gemm/gemm_norm.h"
#include "engine/plan/fusion.h"
#include "engine/plan/step_plan.h"

namespace fathom::engine::cuda {
namespace {

constexpr Gpu kH200{
    .capability = 90, .multiprocessors = 132, .shared_bytes = 232448, .hopper = true};
constexpr Gpu kOther{.capability = 89, .multiprocessors = 128, .shared_bytes = kLeastSharedBytes};

bool offered(const LinearNormShape& shape) {
  const NormOffer offer = hopper_offers(kH200.multiprocessors).norm;
  for (const NormOffer::Limit& limit : shape.backward ? offer.backward : offer.forward) {
    if (shape.width > limit.widest) continue;
    return shape.depth <= limit.deepest && shape.width % offer.width_multiple == 0 &&
           shape.depth % offer.depth_multiple == 0;
  }
  return false;
}

TEST(HopperOffers, NormsAreThoseTheKernelsTake) {
  for (const bool backward : {false, true}) {
    for (std::int64_t width = 8; width <= 320; width += 8) {
      for (std::int64_t depth = 4; depth <= 2048; depth += 4) {
        const LinearNormShape shape{.rows = 4096,
                                    .width = width,
                                    .depth = depth,
                                    .backward = backward,
                                    .branch_sums = backward};
        ASSERT_EQ(offered(shape), !GemmNorm::variants(shape, kH200).empty())
            << width << " x " << depth << (backward ? " backward" : " forward");
        ASSERT_TRUE(GemmNorm::variants(shape, kOther).empty());
      }
    }
  }
}

TEST(HopperOffers, ActivationsAreThoseTheKernelsTake) {
  const ActivationOffer offer = hopper_offers(kH200.multiprocessors).activation;
  for (const bool backward : {false, true}) {
    for (const std::int64_t rows : {32, 64, 100, 4096}) {
      for (const std::int64_t wide : {64, 128, 192, 512, 132 * 128, 133 * 128}) {
        for (std::int64_t other = 4; other <= 4096; other += 12) {
          const GemmActivationSpec spec{rows, wide, other, ActivationKind::gelu, backward};
          const bool fits = rows % offer.rows_multiple == 0 && wide % offer.wide_multiple == 0 &&
                            other % offer.other_multiple == 0 && wide <= offer.widest;
          ASSERT_EQ(fits, !GemmActivation::variants(spec, kH200).empty())
              << rows << " x " << wide << " x " << other;
          ASSERT_TRUE(GemmActivation::variants(spec, kOther).empty());
        }
      }
    }
  }
}

}  // namespace
}  // namespace fathom::engine::cuda
