// A small dense matrix over any number type, row by row.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace fathom::lab {

template <class Real>
struct Matrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<Real> values;

  Matrix() = default;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c, Real(0)) {}

  Real& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  const Real& at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

/// a b, where b may be of a narrower type (weights are doubles).
template <class Real, class Factor>
Matrix<Real> product(const Matrix<Real>& a, const Matrix<Factor>& b) {
  Matrix<Real> c(a.rows, b.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t k = 0; k < a.columns; ++k) {
      const Real& factor = a.at(i, k);
      for (std::size_t j = 0; j < b.columns; ++j) c.at(i, j) += factor * Real(b.at(k, j));
    }
  }
  return c;
}

template <class Real>
void add_to(Matrix<Real>& sum, const Matrix<Real>& term) {
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += term.values[i];
}

/// Mean over rows: one number per column.
template <class Real>
std::vector<Real> column_means(const Matrix<Real>& x) {
  std::vector<Real> means(x.columns, Real(0));
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < x.columns; ++j) means[j] += x.at(i, j);
  }
  for (Real& mean : means) mean = mean / Real(static_cast<double>(x.rows));
  return means;
}

/// x with the mean token taken off every row.
template <class Real>
Matrix<Real> residual(const Matrix<Real>& x) {
  const std::vector<Real> means = column_means(x);
  Matrix<Real> r = x;
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < x.columns; ++j) r.at(i, j) -= means[j];
  }
  return r;
}

struct SumNorms {
  double column = 0;  // largest sum of magnitudes in a column: the 1-norm
  double row = 0;     // in a row: the infinity-norm
};

template <class Real>
SumNorms sum_norms(const Matrix<Real>& x) {
  using std::abs;
  std::vector<Real> columns(x.columns, Real(0));
  SumNorms norms;
  for (std::size_t i = 0; i < x.rows; ++i) {
    Real row(0);
    for (std::size_t j = 0; j < x.columns; ++j) {
      const Real magnitude = abs(x.at(i, j));
      row += magnitude;
      columns[j] += magnitude;
    }
    norms.row = std::max(norms.row, static_cast<double>(row));
  }
  for (const Real& column : columns) {
    norms.column = std::max(norms.column, static_cast<double>(column));
  }
  return norms;
}

}  // namespace fathom::lab
