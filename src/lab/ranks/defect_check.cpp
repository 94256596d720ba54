#include "lab/ranks/defect_check.h"

#include <algorithm>

#include "core/error.h"
#include "exact/field_rank.h"
#include "lab/ranks/polynomial_ideal.h"
#include "lab/ranks/rank_parts.h"

namespace fathom::lab {

using exact::AttentionShape;
using exact::AttentionWeights;
using exact::FieldSampler;
using exact::PrimeField;
using Element = PrimeField::Element;

namespace {

constexpr std::size_t kDegree = 7;       // in b b^T
constexpr std::size_t kGramDegree = 13;  // of three layers
constexpr std::size_t kMostZeros = 600;

FieldMatrix square(const FieldVector& values, std::size_t width) {
  FieldMatrix matrix;
  for (std::size_t i = 0; i < width; ++i) {
    matrix.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i * width),
                        values.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  }
  return matrix;
}

Element form_value(const FieldMatrix& matrix, const FieldVector& b, const PrimeField& field) {
  Element sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    sum = field.add(sum, field.multiply(b[i], field.dot(matrix[i].data(), 1, b.data(), b.size())));
  }
  return sum;
}

AttentionShape network_shape(std::size_t width) {
  AttentionShape shape;
  shape.layers = 3;
  shape.width = width;
  shape.positions = width + 1;  // d vectors on side A, one on side B
  return shape;
}

/// A prime small enough to list the points of the plane alpha.b = 0, large enough for many zeros.
std::uint32_t search_prime(std::size_t width) {
  return width == 6 ? 43 : 101;
}

/// Common zeros of the three forms, one for each line through the origin.
std::vector<FieldVector> common_zeros(const DefectForms& forms, const PrimeField& field) {
  const std::size_t free = forms.alpha.size() - 1;
  const FieldMatrix first = restricted_form(forms.first, forms.alpha, field);
  const FieldMatrix second = restricted_form(forms.second, forms.alpha, field);
  const auto p = static_cast<Element>(field.prime());
  const Element inverse = field.inverse(forms.alpha.back());
  std::vector<FieldVector> zeros;
  // Points whose first nonzero coordinate is 1.
  for (std::size_t lead = 0; lead < free; ++lead) {
    FieldVector c(free, 0);
    c[lead] = 1;
    while (zeros.size() < kMostZeros) {
      if (form_value(first, c, field) == 0 && form_value(second, c, field) == 0) {
        FieldVector b = c;
        const Element rest = field.dot(forms.alpha.data(), 1, c.data(), free);
        b.push_back(field.constant(-field.multiply(rest, inverse)));
        zeros.push_back(std::move(b));
      }
      std::size_t digit = lead + 1;
      while (digit < free && ++c[digit] == p) c[digit++] = 0;
      if (digit >= free) break;
    }
  }
  return zeros;
}

/// Rank of the values of all forms of degree 14 at the points.
std::size_t conditions_of(const std::vector<FieldVector>& points, std::size_t width,
                          const PrimeField& field) {
  const std::vector<Exponents> all = monomials(width, 2 * kDegree);
  std::vector<double> matrix;
  for (const FieldVector& b : points) {
    std::vector<FieldVector> powers(width, FieldVector{1});
    for (std::size_t v = 0; v < width; ++v) {
      for (std::size_t e = 0; e < 2 * kDegree; ++e) {
        powers[v].push_back(field.multiply(powers[v].back(), b[v]));
      }
    }
    for (const Exponents& exponents : all) {
      Element value = 1;
      for (std::size_t v = 0; v < width; ++v)
        value = field.multiply(value, powers[v][exponents[v]]);
      matrix.push_back(field.balanced(value));
    }
  }
  return exact::rank_mod_p(matrix, points.size(), all.size(), field.prime());
}

std::size_t missing_forms(std::size_t width, std::uint64_t seed) {
  const PrimeField field(exact::primes_below(exact::kPrimeLimit, 1).front());
  FieldSampler sampler(seed, 1, field);
  const DefectForms forms =
      defect_forms(exact::random_attention_weights(network_shape(width), sampler), width, field);
  const std::vector<Polynomial> generators{
      quadratic_form(restricted_form(forms.first, forms.alpha, field), field),
      quadratic_form(restricted_form(forms.second, forms.alpha, field), field)};
  return ideal_codimension(generators, width - 1, 2 * kDegree, field);
}

}  // namespace

DefectForms defect_forms(const AttentionWeights<Element>& weights, std::size_t width,
                         const PrimeField& field) {
  // With M_l = W^O W^V and N_l = (W^K)^T W^Q of layer l: alpha = (M_3 M_2 M_1)^T e_0, N = N_1,
  // Q = M_1^T N_2 M_1.
  std::vector<FieldMatrix> outer;
  std::vector<FieldMatrix> inner;
  for (const auto& layer : weights) {
    outer.push_back(field_product(square(layer.output, width), square(layer.value, width), field));
    inner.push_back(
        field_product(transposed(square(layer.key, width)), square(layer.query, width), field));
  }
  DefectForms forms;
  forms.alpha = field_product(field_product(outer[2], outer[1], field), outer[0], field).front();
  forms.first = inner[0];
  forms.second =
      field_product(field_product(transposed(outer[0]), inner[1], field), outer[0], field);
  return forms;
}

Element degree_seven_part(const AttentionShape& shape, const AttentionWeights<Element>& weights,
                          const FieldVector& inputs_a, const FieldVector& b,
                          const PrimeField& field) {
  // y(A, s b) = sum_k s^2k y_k: the part k = 7 from C + 1 values of s.
  FieldVector nodes;
  FieldVector values;
  for (Element s = 1; s <= static_cast<Element>(kGramDegree + 1); ++s) {
    FieldVector x = inputs_a;
    for (const Element value : b) x.push_back(field.multiply(s, value));
    FieldVector scratch(exact::attention_scratch(shape));
    nodes.push_back(field.multiply(s, s));
    values.push_back(exact::attention_output(field, shape, weights, x.data(), scratch.data()));
  }
  const FieldVector row = exact::interpolation_rows(field, nodes)[kDegree];
  return field.dot(row.data(), 1, values.data(), values.size());
}

std::size_t degree_seven_rank(std::size_t width, std::uint64_t seed, const Ticker& tick) {
  exact::RankSetting setting = attention_setting(3, width, 1, width + 1);
  setting.partition = std::string(width, '0') + "1";
  setting.output_position = 0;
  const std::uint32_t prime = exact::primes_below(exact::kPrimeLimit, 1).front();
  std::vector<std::size_t> sides(kGramDegree + 1, 0);
  sides[kDegree] = monomials(width, 2 * kDegree).size();
  auto matrices = exact::sample_matrices(setting, exact::Method::gram, prime, seed, sides,
                                         [&](double share) { tick(0.8 * share); });
  return exact::rank_mod_p(matrices[kDegree], sides[kDegree], sides[kDegree], prime);
}

DefectCheck check_defect(std::size_t width, std::uint64_t seed, const Ticker& tick) {
  if (width < 4 || width > 6) throw InternalError("the check is for widths 4 to 6");
  DefectCheck check;
  check.width = width;
  check.forms = monomials(width, 2 * kDegree).size();
  check.missing = missing_forms(width, seed);
  tick(0.4);
  const PrimeField field(search_prime(width));
  const AttentionShape shape = network_shape(width);
  // Two conics need not meet in points of a small field: weights are drawn until all four do.
  AttentionWeights<Element> weights;
  std::vector<FieldVector> zeros;
  for (std::uint64_t draw = 0; zeros.size() < check.missing; ++draw) {
    if (draw > 10000) throw InternalError("no weights with enough common zeros");
    FieldSampler sampler(seed, 2 + draw, field);
    weights = exact::random_attention_weights(shape, sampler);
    const DefectForms forms = defect_forms(weights, width, field);
    if (forms.alpha.back() != 0) zeros = common_zeros(forms, field);
  }
  tick(0.6);
  check.zeros = zeros.size();
  check.conditions = conditions_of(zeros, width, field);
  FieldSampler inputs(seed, 1u << 20, field);
  for (std::size_t z = 0; z < zeros.size(); ++z) {
    const FieldVector a = inputs.vector(width * width);
    ++check.evaluations;
    if (degree_seven_part(shape, weights, a, zeros[z], field) != 0) ++check.not_vanishing;
    if (degree_seven_part(shape, weights, a, inputs.vector(width), field) == 0) ++check.control;
    tick(0.6 + 0.4 * static_cast<double>(z) / static_cast<double>(zeros.size()));
  }
  return check;
}

}  // namespace fathom::lab
