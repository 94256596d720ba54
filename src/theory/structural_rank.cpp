#include "theory/structural_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/counts.h"
#include "core/error.h"
#include "theory/log3.h"
#include "theory/log_binomial.h"

namespace fathom::theory {
namespace {

constexpr double kMaxExactDigits = 60;
constexpr double kMaxPartitions = 5e7;

/// Weyl's formula: dim S_mu(C^d) = prod_{i<j} (mu_i - mu_j + j - i) / (j - i).
mpz_class irreducible_dimension(const std::vector<std::int64_t>& rows, std::int64_t width) {
  const auto part = [&](std::int64_t i) {
    return i < static_cast<std::int64_t>(rows.size()) ? rows[static_cast<std::size_t>(i)] : 0;
  };
  mpz_class numerator = 1;
  mpz_class denominator = 1;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(width, std::ssize(rows)); ++i) {
    for (std::int64_t j = i + 1; j < width; ++j) {
      numerator *= part(i) - part(j) + j - i;
      denominator *= j - i;
    }
  }
  return numerator / denominator;
}

/// Calls visit(rows) for every partition of `total` into at most `max_rows` positive rows.
void for_each_partition(std::int64_t total, std::int64_t max_rows,
                        const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  std::vector<std::int64_t> rows;
  const std::function<void(std::int64_t, std::int64_t)> extend = [&](std::int64_t left,
                                                                     std::int64_t largest) {
    if (left == 0) return visit(rows);
    if (std::ssize(rows) == max_rows) return;
    for (std::int64_t row = std::min(left, largest); row >= 1; --row) {
      rows.push_back(row);
      extend(left - row, row);
      rows.pop_back();
    }
  };
  extend(total, total);
}

/// Partitions of n into at most m rows number about n^(m-1) / (m! (m-1)!).
double partition_count(double n, double m) {
  return std::exp((m - 1) * std::log(std::max(n, 1.0)) - std::lgamma(m + 1) - std::lgamma(m));
}

mpz_class binomial(const mpz_class& upper, unsigned long lower) {
  mpz_class value;
  mpz_bin_ui(value.get_mpz_t(), upper.get_mpz_t(), lower);
  return value;
}

/// binom(m + D, D) for a possibly negative m = -1 (an empty sum).
mpz_class multiset_sum(const mpz_class& m, unsigned long gram_dimension) {
  if (m < 0) return 0;
  return binomial(m + gram_dimension, gram_dimension);
}

mpz_class side_b_dimension(std::int64_t degree, std::int64_t width, std::int64_t rank) {
  if (rank >= width) {
    const auto D = static_cast<unsigned long>(width * (width + 1) / 2);
    return binomial(mpz_class(degree) + (D - 1), D - 1);
  }
  mpz_class sum = 0;
  for_each_partition(degree, rank, [&](std::vector<std::int64_t> rows) {
    for (auto& row : rows) row *= 2;
    sum += irreducible_dimension(rows, width);
  });
  return sum;
}

mpz_class side_a_dimension(std::int64_t degree, std::int64_t width, std::int64_t rank) {
  if (rank >= width) return width * side_b_dimension(degree, width, rank);
  mpz_class sum = 0;
  // mu = 2 lambda with one box added to a row: exactly one odd part. Rows of equal length take the
  // box only at their first, else mu would not be a partition.
  for_each_partition(degree, rank, [&](const std::vector<std::int64_t>& half_rows) {
    std::vector<std::int64_t> rows = half_rows;
    for (auto& row : rows) row *= 2;
    if (std::ssize(rows) < rank) rows.push_back(0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i > 0 && rows[i - 1] == rows[i]) continue;
      ++rows[i];
      sum += irreducible_dimension(rows, width);
      --rows[i];
    }
  });
  return sum;
}

}  // namespace

std::int64_t gram_degree(std::int64_t layers) {
  if (layers < 1 || layers > 39) {
    throw ConfigError(fmt::format("layers must be 1 to 39 for an exact degree, not {}", layers));
  }
  std::int64_t power = 1;
  for (std::int64_t i = 0; i < layers; ++i) power *= 3;
  return (power - 1) / 2;
}

double real_gram_degree(double layers) {
  return (std::pow(3.0, layers) - 1) / 2;
}

std::vector<DegreeBlock> degree_blocks(const GramSetting& setting) {
  if (setting.width < 1 || setting.positions_a < 1 || setting.positions_b < 1) {
    throw ConfigError("width and the positions on each side must be at least 1");
  }
  const std::int64_t degree = gram_degree(setting.layers);
  const std::int64_t rank_a = std::min(setting.positions_a, setting.width);
  const std::int64_t rank_b = std::min(setting.positions_b, setting.width);
  const double deficient =
      as_double(std::max(rank_a < setting.width ? rank_a : 1, rank_b < setting.width ? rank_b : 1));
  const double work = partition_count(as_double(degree), deficient) * degree;
  if (work > kMaxPartitions || degree > 10'000'000) {
    throw ConfigError(fmt::format(
        "R_max for {} layers, width {} and {}+{} positions would sum about {:.1e} representations; "
        "take at most {:.0e}",
        setting.layers, setting.width, setting.positions_a, setting.positions_b,
        std::max(work, as_double(degree)), kMaxPartitions));
  }
  std::vector<DegreeBlock> blocks;
  for (std::int64_t k = 0; k <= degree; ++k) {
    blocks.push_back({side_a_dimension(degree - k, setting.width, rank_a),
                      side_b_dimension(k, setting.width, rank_b)});
  }
  return blocks;
}

mpz_class structural_rank(const GramSetting& setting) {
  mpz_class sum = 0;
  for (const DegreeBlock& block : degree_blocks(setting)) sum += block.bound();
  return sum;
}

SaturatedRank saturated_structural_rank(std::int64_t layers, std::int64_t width) {
  const double d = as_double(width);
  const double D = d * (d + 1) / 2;
  const double C = real_gram_degree(as_double(layers));
  const auto log_b = [&](double k) { return log_binomial(k, D - 1); };
  const auto log_a = [&](double j) { return std::log(d) + log_binomial(j, D - 1); };

  // k*: B grows and A(C-k) falls with k, so the last k with B(k) <= A(C-k) is found by bisection
  // over whole numbers (over representable ones once C passes 2^53).
  double crossing = 0;
  double beyond = C + 1;
  for (;;) {
    const double middle = std::floor(crossing + (beyond - crossing) / 2);
    if (middle <= crossing || middle >= beyond) break;
    (log_b(middle) <= log_a(C - middle) ? crossing : beyond) = middle;
  }

  SaturatedRank rank;
  const double left = log_binomial(crossing, D);
  const double right = crossing >= C ? -1e300 : std::log(d) + log_binomial(C - crossing - 1, D);
  const double log_sum = std::max(left, right) + std::log1p(std::exp(-std::fabs(left - right)));
  rank.log3 = log_sum / kLn3;

  if (log_sum / std::log(10.0) <= kMaxExactDigits && layers <= 30) {
    const auto gram_dimension = static_cast<unsigned long>(width * (width + 1) / 2);
    const mpz_class degree = gram_degree(layers);
    const auto below = [&](const mpz_class& k) {  // B(k) <= A(C-k), exactly
      return binomial(k + (gram_dimension - 1), gram_dimension - 1) <=
             width * binomial(degree - k + (gram_dimension - 1), gram_dimension - 1);
    };
    mpz_class first = 0;
    mpz_class last = degree;
    while (first < last) {
      const mpz_class middle = (first + last + 1) / 2;
      if (below(middle)) {
        first = middle;
      } else {
        last = middle - 1;
      }
    }
    rank.exact = multiset_sum(first, gram_dimension) +
                 width * multiset_sum(degree - first - 1, gram_dimension);
  }
  return rank;
}

}  // namespace fathom::theory
