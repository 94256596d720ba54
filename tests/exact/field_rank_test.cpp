#include "exact/field_rank.h"

#include <flint/nmod_mat.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "exact/prime_field.h"
#include "exact/separation_rank.h"

namespace fathom::exact {
namespace {

/// rows x columns of rank `rank` (for large p almost surely): a product of two random factors.
std::vector<double> planted(std::size_t rows, std::size_t columns, std::size_t rank,
                            const PrimeField& field, std::uint64_t seed) {
  FieldSampler sampler(seed, 0, field);
  const auto left = sampler.vector(rows * rank);
  const auto right = sampler.vector(rank * columns);
  std::vector<double> matrix;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < rank; ++k) {
        sum = field.add(sum, field.multiply(left[i * rank + k], right[k * columns + j]));
      }
      matrix.push_back(field.balanced(sum));
    }
  }
  return matrix;
}

std::size_t flint_rank(const std::vector<double>& matrix, std::size_t rows, std::size_t columns,
                       std::uint32_t prime) {
  nmod_mat_t copy;
  nmod_mat_init(copy, static_cast<slong>(rows), static_cast<slong>(columns), prime);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const auto value = static_cast<std::int64_t>(matrix[i * columns + j]);
      nmod_mat_entry(copy, i, j) = static_cast<mp_limb_t>(value < 0 ? value + prime : value);
    }
  }
  const slong rank = nmod_mat_rank(copy);
  nmod_mat_clear(copy);
  return static_cast<std::size_t>(rank);
}

TEST(FieldRank, PlantedRanksAreFoundAndFlintAgrees) {
  const std::uint32_t prime = primes_below(kPrimeLimit, 1).front();
  const PrimeField field(prime);
  struct Case {
    std::size_t rows, columns, rank;
  };
  for (const Case& c : {Case{1, 1, 1}, Case{7, 7, 0}, Case{40, 40, 40}, Case{64, 90, 31},
                        Case{200, 120, 119}, Case{300, 300, 17}}) {
    auto matrix = planted(c.rows, c.columns, c.rank, field, c.rows + c.rank);
    EXPECT_EQ(flint_rank(matrix, c.rows, c.columns, prime), c.rank);
    EXPECT_EQ(rank_mod_p(matrix, c.rows, c.columns, prime), c.rank);
  }
}

TEST(FieldRank, SmallFieldsDropRanksTheSameWay) {
  // Over p = 3 random square matrices are often singular: a referee is the only expectation.
  const PrimeField field(3);
  std::size_t singular = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto matrix = planted(9, 9, 9, field, seed);
    const std::size_t expected = flint_rank(matrix, 9, 9, 3);
    singular += expected < 9;
    EXPECT_EQ(rank_mod_p(matrix, 9, 9, 3), expected);
  }
  EXPECT_GT(singular, 10u);
}

TEST(FieldRank, TheDefectOfThreeLayersAndWidthFourIsReal) {
  // One head does not always reach R_max: with one B position the block of degree 7 spans 676 of
  // the 680 forms of degree 14 in four variables (docs/theory.md proves that four are missing).
  RankSetting setting;
  setting.layers = 3;
  setting.width = 4;
  setting.positions = 5;
  setting.partition = "00001";
  for (const std::uint32_t prime : primes_below(kPrimeLimit, 2)) {
    std::vector<std::size_t> sides(14, 0);
    sides[7] = 700;
    auto matrix = sample_matrices(setting, Method::gram, prime, prime, sides)[7];
    EXPECT_EQ(flint_rank(matrix, 700, 700, prime), 676u);
    EXPECT_EQ(rank_mod_p(matrix, 700, 700, prime), 676u);
  }
  EXPECT_EQ(structural_bounds(setting)[7], 680);
  EXPECT_EQ(proved_bounds(setting)[7], 676);
}

TEST(FieldRank, RefusesMisfitSizes) {
  std::vector<double> matrix(6);
  EXPECT_THROW(rank_mod_p(matrix, 2, 2, 7), InternalError);
  EXPECT_THROW(rank_mod_p(matrix, 2, 3, 8), InternalError);
  EXPECT_EQ(rank_mod_p(matrix, 2, 3, 7), 0u);
}

}  // namespace
}  // namespace fathom::exact
