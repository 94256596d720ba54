#include "lab/attention_matrices/reachable_rank.h"

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "exact/field_rank.h"

namespace fathom::lab {
namespace {

using exact::PrimeField;
using Element = PrimeField::Element;

Element difference(const PrimeField& field, Element a, Element b) {
  return field.add(a, field.constant(-b));
}

/// d_ij = s_ij - s_i,j+1.
FieldMatrix column_differences(const FieldMatrix& scores, const PrimeField& field) {
  FieldMatrix result;
  for (const auto& row : scores) {
    result.emplace_back();
    for (std::size_t j = 0; j + 1 < row.size(); ++j) {
      result.back().push_back(difference(field, row[j], row[j + 1]));
    }
  }
  return result;
}

std::size_t rank_of(const FieldMatrix& matrix, std::size_t first_row, std::size_t columns,
                    const PrimeField& field) {
  std::vector<double> values;
  for (std::size_t i = first_row; i < matrix.size(); ++i) {
    for (std::size_t j = 0; j < columns; ++j) values.push_back(field.balanced(matrix[i][j]));
  }
  return exact::rank_mod_p(values, matrix.size() - first_row, columns, field.prime());
}

/// The causal differences: row i of the result belongs to query i + 1, entries j <= i are given.
FieldMatrix causal_differences(const FieldMatrix& scores, const PrimeField& field) {
  FieldMatrix all = column_differences(scores, field);
  all.erase(all.begin());
  return all;
}

/// A solution of A x = b with one equation per row; none when the system is inconsistent.
std::optional<std::vector<Element>> solve(FieldMatrix a, std::vector<Element> b,
                                          const PrimeField& field) {
  const std::size_t unknowns = a.empty() ? 0 : a.front().size();
  std::vector<std::size_t> pivots;
  for (std::size_t row = 0, column = 0; row < a.size() && column < unknowns; ++column) {
    std::size_t pivot = row;
    while (pivot < a.size() && a[pivot][column] == 0) ++pivot;
    if (pivot == a.size()) continue;
    std::swap(a[pivot], a[row]);
    std::swap(b[pivot], b[row]);
    const Element inverse = field.inverse(a[row][column]);
    for (Element& value : a[row]) value = field.multiply(value, inverse);
    b[row] = field.multiply(b[row], inverse);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const Element factor = a[i][column];
      if (i == row || factor == 0) continue;
      for (std::size_t j = column; j < unknowns; ++j) {
        a[i][j] = difference(field, a[i][j], field.multiply(factor, a[row][j]));
      }
      b[i] = difference(field, b[i], field.multiply(factor, b[row]));
    }
    pivots.push_back(column);
    ++row;
  }
  for (std::size_t i = pivots.size(); i < a.size(); ++i) {
    if (b[i] != 0) return {};
  }
  std::vector<Element> x(unknowns, 0);
  for (std::size_t i = 0; i < pivots.size(); ++i) x[pivots[i]] = b[i];
  return x;
}

bool fits_triangle(const FieldMatrix& given, const Completion& found, const PrimeField& field) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      Element sum = 0;
      for (std::size_t k = 0; k < found.right.size(); ++k) {
        sum = field.add(sum, field.multiply(found.left[i][k], found.right[k][j]));
      }
      if (sum != given[i][j]) return false;
    }
  }
  return true;
}

}  // namespace

FieldMatrix random_scores(std::size_t tokens, const PrimeField& field, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x73636f726573;  // "scores"
  exact::FieldSampler sampler(seed, kStream, field);
  FieldMatrix scores;
  for (std::size_t i = 0; i < tokens; ++i) scores.push_back(sampler.vector(tokens));
  return scores;
}

std::size_t shift_rank(const FieldMatrix& scores, const PrimeField& field) {
  return rank_of(column_differences(scores, field), 0, scores.size() - 1, field);
}

std::size_t causal_block_rank(const FieldMatrix& scores, const PrimeField& field) {
  const FieldMatrix given = causal_differences(scores, field);
  std::size_t best = 0;
  // Rows i >= c - 1 have their first c entries.
  for (std::size_t columns = 1; columns <= given.size(); ++columns) {
    const std::size_t side = std::min(columns, given.size() - columns + 1);
    if (side > best) best = std::max(best, rank_of(given, columns - 1, columns, field));
  }
  return best;
}

std::optional<Completion> complete_triangle(const FieldMatrix& given, std::size_t rank,
                                            const PrimeField& field) {
  const std::size_t m = given.size();
  Completion found;
  found.left.assign(m, std::vector<Element>(rank, 0));
  found.right.assign(rank, std::vector<Element>(m, 0));
  // The first `rank` columns are the left factor itself.
  for (std::size_t j = 0; j < std::min(rank, m); ++j) found.right[j][j] = 1;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j <= i && j < rank; ++j) found.left[i][j] = given[i][j];
  }
  for (std::size_t j = rank; j < m; ++j) {
    FieldMatrix rows(found.left.begin() + static_cast<std::ptrdiff_t>(j), found.left.end());
    std::vector<Element> wanted;
    for (std::size_t i = j; i < m; ++i) wanted.push_back(given[i][j]);
    const auto column = solve(std::move(rows), std::move(wanted), field);
    if (!column) return {};
    for (std::size_t k = 0; k < rank; ++k) found.right[k][j] = (*column)[k];
  }
  if (!fits_triangle(given, found, field)) throw InternalError("a completion that does not fit");
  return found;
}

ReachableSize reachable_size(std::size_t tokens, bool causal, std::uint64_t seed) {
  const PrimeField field(exact::primes_below(exact::kPrimeLimit, 1).front());
  const FieldMatrix scores = random_scores(tokens, field, seed);
  // Without a mask the scores themselves attain the rank of the differences.
  if (!causal) return {shift_rank(scores, field), shift_rank(scores, field)};
  ReachableSize size;
  size.lower = causal_block_rank(scores, field);
  const FieldMatrix given = causal_differences(scores, field);
  size.upper = size.lower;
  while (!complete_triangle(given, size.upper, field)) ++size.upper;
  return size;
}

std::size_t singular_rank(const AttentionTarget& target) {
  const auto n = static_cast<Eigen::Index>(target.tokens);
  Eigen::MatrixXd logs(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      logs(i, j) = std::log(target.weights[static_cast<std::size_t>(i * n + j)]);
    }
    logs.row(i).array() -= logs.row(i).mean();
  }
  const Eigen::VectorXd values = Eigen::JacobiSVD<Eigen::MatrixXd>(logs).singularValues();
  std::size_t rank = 0;
  while (rank < target.tokens && values(static_cast<Eigen::Index>(rank)) > 1e-9 * values(0)) ++rank;
  return rank;
}

}  // namespace fathom::lab
