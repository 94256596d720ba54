// Arithmetic of two doubles against MPFR at 300 bits.
#include "lab/collapse/double_double.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "mpfr_real.h"

namespace fathom::lab {
namespace {

MpfrReal exact(const DoubleDouble& x) {
  return MpfrReal(x.hi) + MpfrReal(x.lo);
}

/// log2 of the relative error; -300 for none.
double log2_error(const DoubleDouble& found, const MpfrReal& truth) {
  const double error = static_cast<double>(abs((exact(found) - truth) / truth));
  return error == 0 ? -300 : std::log2(error);
}

DoubleDouble draw(const RandomStream& random, std::uint64_t index) {
  const double hi = random.normal(2 * index) * std::pow(2.0, 20 * random.normal(2 * index + 1));
  return DoubleDouble::two_sum(hi, hi * 0x1p-54 * random.uniform(1000000 + index));
}

TEST(DoubleDouble, FourOperationsAndRootKeep100Bits) {
  const RandomStream random(7, 1);
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const DoubleDouble a = draw(random, 2 * i);
    const DoubleDouble b = draw(random, 2 * i + 1);
    // Sums are measured against their operands: cancellation is not the arithmetic's fault.
    const MpfrReal scale = abs(exact(a)) + abs(exact(b));
    const MpfrReal sum_error = (exact(a + b) - (exact(a) + exact(b))) / scale;
    ASSERT_LT(std::fabs(static_cast<double>(sum_error)), 0x1p-103);
    ASSERT_LT(log2_error(a * b, exact(a) * exact(b)), -102);
    ASSERT_LT(log2_error(a / b, exact(a) / exact(b)), -102);
    ASSERT_LT(log2_error(sqrt(abs(a)), sqrt(abs(exact(a)))), -102);
  }
}

TEST(DoubleDouble, ExponentialKeeps100Bits) {
  const RandomStream random(8, 1);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const double hi = 60 * random.normal(i);
    const DoubleDouble x = DoubleDouble::two_sum(hi, hi * 0x1p-54 * random.uniform(9000 + i));
    if (std::fabs(x.hi) > 600) continue;
    ASSERT_LT(log2_error(exp(x), exp(exact(x))), -97 + std::log2(1 + std::fabs(x.hi)));
  }
  EXPECT_EQ(static_cast<double>(exp(DoubleDouble(0))), 1);
  EXPECT_EQ(static_cast<double>(exp(DoubleDouble(-1e4))), 0);
}

TEST(DoubleDouble, SumsRecoverWhatDoublesLose) {
  const DoubleDouble one = DoubleDouble(1e-25) + DoubleDouble(1) - DoubleDouble(1);
  EXPECT_NEAR(static_cast<double>(one) / 1e-25, 1, 1e-6);
  EXPECT_TRUE(DoubleDouble(1) < DoubleDouble(1) + DoubleDouble(1e-25));
}

}  // namespace
}  // namespace fathom::lab
