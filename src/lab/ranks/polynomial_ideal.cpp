#include "lab/ranks/polynomial_ideal.h"

#include "core/error.h"
#include "exact/field_rank.h"

namespace fathom::lab {

using exact::PrimeField;

namespace {

void add_monomials(Exponents& at, std::size_t variable, std::size_t left,
                   std::vector<Exponents>& all) {
  if (variable + 1 == at.size()) {
    at[variable] = static_cast<std::uint16_t>(left);
    all.push_back(at);
    return;
  }
  for (std::size_t power = 0; power <= left; ++power) {
    at[variable] = static_cast<std::uint16_t>(power);
    add_monomials(at, variable + 1, left - power, all);
  }
}

}  // namespace

std::vector<Exponents> monomials(std::size_t variables, std::size_t degree) {
  std::vector<Exponents> all;
  Exponents at(variables, 0);
  add_monomials(at, 0, degree, all);
  return all;
}

std::size_t ideal_codimension(const std::vector<Polynomial>& generators, std::size_t variables,
                              std::size_t degree, const PrimeField& field) {
  const std::vector<Exponents> columns = monomials(variables, degree);
  std::map<Exponents, std::size_t> column_of;
  for (std::size_t c = 0; c < columns.size(); ++c) column_of.emplace(columns[c], c);
  std::vector<double> matrix;
  std::size_t rows = 0;
  for (const Polynomial& generator : generators) {
    for (const Exponents& factor : monomials(variables, degree - generator.degree)) {
      matrix.resize((rows + 1) * columns.size(), 0);
      for (const auto& [exponents, coefficient] : generator.terms) {
        Exponents product = exponents;
        for (std::size_t v = 0; v < variables; ++v) {
          product[v] = static_cast<std::uint16_t>(product[v] + factor[v]);
        }
        matrix[rows * columns.size() + column_of.at(product)] = field.balanced(coefficient);
      }
      ++rows;
    }
  }
  return columns.size() - exact::rank_mod_p(matrix, rows, columns.size(), field.prime());
}

Polynomial quadratic_form(const FieldMatrix& matrix, const PrimeField& field) {
  Polynomial form;
  form.degree = 2;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    for (std::size_t j = 0; j < matrix.size(); ++j) {
      Exponents exponents(matrix.size(), 0);
      ++exponents[i];
      ++exponents[j];
      auto& term = form.terms[exponents];
      term = field.add(term, matrix[i][j]);
    }
  }
  return form;
}

Polynomial linear_form(const FieldVector& coefficients) {
  Polynomial form;
  form.degree = 1;
  for (std::size_t i = 0; i < coefficients.size(); ++i) {
    Exponents exponents(coefficients.size(), 0);
    exponents[i] = 1;
    form.terms[exponents] = coefficients[i];
  }
  return form;
}

FieldMatrix restricted_form(const FieldMatrix& matrix, const FieldVector& linear,
                            const PrimeField& field) {
  if (linear.back() == 0) throw InternalError("the linear form does not name its last variable");
  // b_d = - sum_i (a_i / a_d) b_i.
  const std::size_t rest = linear.size() - 1;
  FieldMatrix basis(linear.size(), FieldVector(rest, 0));
  const auto inverse = field.inverse(linear.back());
  for (std::size_t i = 0; i < rest; ++i) {
    basis[i][i] = 1;
    basis[rest][i] = field.constant(-field.multiply(linear[i], inverse));
  }
  return field_product(field_product(transposed(basis), matrix, field), basis, field);
}

}  // namespace fathom::lab
