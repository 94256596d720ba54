// The stack of stack_spec.h evaluated straight from its definition over any number type, and rho,
// how far its tokens are from being all equal:
//
//   rho = |X - token mean| / |X|,   |X| = sqrt(largest column sum x largest row sum of magnitudes)
//
// (arXiv 2103.03404; the token mean is what its released plots use, not the exact minimiser.)
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "lab/collapse/stack_spec.h"

namespace fathom::lab {

/// n x n: row i holds the weights of query i.
template <class Real>
Matrix<Real> attention_weights(const StackSpec& spec, const HeadWeights& head,
                               const Matrix<Real>& x) {
  using std::exp;
  using std::sqrt;
  const Matrix<Real> queries = product(x, head.query);
  const Matrix<Real> keys = product(x, head.key);
  const Real root = sqrt(Real(static_cast<double>(spec.head_size())));
  Matrix<Real> weights(x.rows, x.rows);
  for (std::size_t i = 0; i < x.rows; ++i) {
    Real largest(-1e300);
    for (std::size_t j = 0; j < x.rows; ++j) {
      if (!spec.sees(i, j)) continue;
      Real score(0);
      for (std::size_t a = 0; a < keys.columns; ++a) score += queries.at(i, a) * keys.at(j, a);
      weights.at(i, j) = score / root;
      if (weights.at(i, j) > largest) largest = weights.at(i, j);
    }
    Real sum(0);
    for (std::size_t j = 0; j < x.rows; ++j) {
      if (!spec.sees(i, j)) continue;
      weights.at(i, j) = exp(weights.at(i, j) - largest);
      sum += weights.at(i, j);
    }
    for (std::size_t j = 0; j < x.rows; ++j) weights.at(i, j) = weights.at(i, j) / sum;
  }
  return weights;
}

/// Rows to mean 0 and variance 1.
template <class Real>
void normalise_rows(Matrix<Real>& x) {
  using std::sqrt;
  const Real count(static_cast<double>(x.columns));
  for (std::size_t i = 0; i < x.rows; ++i) {
    Real mean(0);
    for (std::size_t j = 0; j < x.columns; ++j) mean += x.at(i, j);
    mean = mean / count;
    Real variance(0);
    for (std::size_t j = 0; j < x.columns; ++j) {
      x.at(i, j) -= mean;
      variance += x.at(i, j) * x.at(i, j);
    }
    const Real deviation = sqrt(variance / count);
    for (std::size_t j = 0; j < x.columns; ++j) x.at(i, j) = x.at(i, j) / deviation;
  }
}

template <class Real>
void update(const StackSpec& spec, Matrix<Real>& x, Matrix<Real> y) {
  if (spec.skip) add_to(y, x);
  x = std::move(y);
  if (spec.norm) normalise_rows(x);
}

template <class Real>
void apply_layer(const StackSpec& spec, const LayerWeights& layer, Matrix<Real>& x) {
  Matrix<Real> y(x.rows, x.columns);
  for (const HeadWeights& head : layer.heads) {
    const Matrix<Real> mixed = product(attention_weights(spec, head, x), product(x, head.value));
    add_to(y, product(mixed, head.output));
  }
  update(spec, x, std::move(y));
  if (!spec.mlp) return;
  Matrix<Real> hidden = product(x, layer.up);
  for (Real& value : hidden.values) {
    if (value < Real(0)) value = Real(0);
  }
  update(spec, x, product(hidden, layer.down));
}

template <class Real>
Matrix<Real> stack_input(const StackSpec& spec, const StackDraw& draw) {
  Matrix<Real> x(draw.x.rows, draw.x.columns);
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = Real(draw.x.values[i]);
  if (spec.norm) normalise_rows(x);
  return x;
}

/// log10 of sqrt(column sum x row sum); -infinity for a zero matrix.
template <class Real>
double log10_size(const Matrix<Real>& x) {
  const SumNorms norms = sum_norms(x);
  return 0.5 * (std::log10(norms.column) + std::log10(norms.row));
}

template <class Real>
double log10_rho(const Matrix<Real>& x) {
  return log10_size(residual(x)) - log10_size(x);
}

/// log10 rho before the first layer and after each one. `look` is called between layers and may
/// throw.
template <class Real>
std::vector<double> collapse_course(const StackSpec& spec, const StackDraw& draw,
                                    const std::function<void()>& look = {}) {
  Matrix<Real> x = stack_input<Real>(spec, draw);
  std::vector<double> course{log10_rho(x)};
  for (const LayerWeights& layer : draw.layers) {
    if (look) look();
    apply_layer(spec, layer, x);
    course.push_back(log10_rho(x));
  }
  return course;
}

}  // namespace fathom::lab
