#include "exact/prime_field.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace fathom::exact {
namespace {

TEST(PrimeField, PrimalityAgreesWithTrialDivision) {
  for (std::uint32_t n = 0; n < 20000; ++n) {
    bool prime = n >= 2;
    for (std::uint32_t q = 2; q * q <= n; ++q) prime = prime && n % q != 0;
    EXPECT_EQ(is_prime(n), prime) << n;
  }
  EXPECT_TRUE(is_prime(2147483647u));
  for (const std::uint32_t pseudoprime : {2047u, 1373653u, 25326001u}) {  // to 2; 2, 3; 2, 3, 5
    EXPECT_FALSE(is_prime(pseudoprime));
  }
}

TEST(PrimeField, PrimesBelowTheLimitAreConsecutive) {
  const auto primes = primes_below(kPrimeLimit, 4);
  ASSERT_EQ(primes.size(), 4u);
  std::size_t found = 0;
  for (std::uint32_t n = kPrimeLimit - 1; found < 4; --n) {
    if (is_prime(n)) {
      EXPECT_EQ(primes[found++], n);
    }
  }
  EXPECT_EQ(primes_below(10, 5), (std::vector<std::uint32_t>{7, 5, 3}));
}

TEST(PrimeField, InversesAndBalancedRepresentatives) {
  const PrimeField field(8388593);
  for (const std::int64_t a : {1, 2, 12345, 8388592}) {
    EXPECT_EQ(field.multiply(a, field.inverse(a)), 1);
  }
  EXPECT_THROW(field.inverse(0), InternalError);
  EXPECT_EQ(field.balanced(8388592), -1.0);
  EXPECT_EQ(field.balanced(4194296), 4194296.0);
  EXPECT_EQ(field.balanced(4194297), -4194296.0);
  EXPECT_EQ(field.constant(-3), 8388590);
}

TEST(PrimeField, InterpolationRecoversCoefficients) {
  const PrimeField field(101);
  const std::vector<std::int64_t> coefficients{7, 0, 100, 13, 58};
  const std::vector<std::int64_t> nodes{1, 4, 9, 16, 25};
  std::vector<std::int64_t> values;
  for (const auto node : nodes) {
    std::int64_t value = 0;
    for (std::size_t k = 5; k-- > 0;)
      value = field.add(field.multiply(value, node), coefficients[k]);
    values.push_back(value);
  }
  const auto rows = interpolation_rows(field, nodes);
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(field.dot(rows[k].data(), 1, values.data(), 5), coefficients[k]);
  }
}

}  // namespace
}  // namespace fathom::exact
