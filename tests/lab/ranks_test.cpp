// Ideals by known Hilbert functions, the three-layer defect three ways, and slices of a stream.
#include <gtest/gtest.h>

#include "exact/separation_rank.h"
#include "lab/ranks/defect_check.h"
#include "lab/ranks/polynomial_ideal.h"
#include "lab/ranks/rank_parts.h"
#include "theory/three_layer_defect.h"

namespace fathom::lab {
namespace {

using exact::PrimeField;

const PrimeField kField(8388593);

std::size_t binomial(std::size_t n, std::size_t k) {
  std::size_t value = 1;
  for (std::size_t i = 1; i <= k; ++i) value = value * (n - k + i) / i;
  return value;
}

FieldMatrix random_square(std::size_t size, std::uint64_t seed) {
  exact::FieldSampler sampler(seed, 1, kField);
  FieldMatrix matrix;
  for (std::size_t i = 0; i < size; ++i) matrix.push_back(sampler.vector(size));
  return matrix;
}

TEST(Ideal, MonomialsAreCounted) {
  EXPECT_EQ(monomials(4, 14).size(), binomial(17, 3));
  EXPECT_EQ(monomials(1, 5).size(), 1u);
  EXPECT_EQ(monomials(3, 0).size(), 1u);
}

TEST(Ideal, HilbertFunctionsOfKnownIdeals) {
  // One linear form in n variables leaves the ring of n - 1.
  exact::FieldSampler sampler(3, 1, kField);
  EXPECT_EQ(ideal_codimension({linear_form(sampler.vector(4))}, 4, 5, kField), binomial(7, 2));
  // A quadric in three variables: a conic has 2 m + 1 forms of degree m.
  const Polynomial conic = quadratic_form(random_square(3, 1), kField);
  EXPECT_EQ(ideal_codimension({conic}, 3, 6, kField), 13u);
  // Two conics meet in four points.
  const Polynomial other = quadratic_form(random_square(3, 2), kField);
  EXPECT_EQ(ideal_codimension({conic, other}, 3, 9, kField), 4u);
  // Two quadrics in space meet in an elliptic curve of degree 4: 4 m.
  EXPECT_EQ(ideal_codimension({quadratic_form(random_square(4, 3), kField),
                               quadratic_form(random_square(4, 4), kField)},
                              4, 7, kField),
            28u);
  // A product of two linear forms twice is no complete intersection: they share a plane.
  FieldMatrix product(3, FieldVector(3, 0));
  product[0][1] = 1;
  FieldMatrix shared(3, FieldVector(3, 0));
  shared[0][2] = 1;
  EXPECT_EQ(ideal_codimension({quadratic_form(product, kField), quadratic_form(shared, kField)}, 3,
                              6, kField),
            8u);  // the line x = 0 (7) and the point (1, 0, 0)
}

TEST(Ideal, ALinearFormMayBeEliminatedFirst) {
  const FieldMatrix first = random_square(4, 5);
  const FieldMatrix second = random_square(4, 6);
  exact::FieldSampler sampler(7, 1, kField);
  const FieldVector linear = sampler.vector(4);
  for (const std::size_t degree : {4, 9}) {
    EXPECT_EQ(ideal_codimension({linear_form(linear), quadratic_form(first, kField),
                                 quadratic_form(second, kField)},
                                4, degree, kField),
              ideal_codimension({quadratic_form(restricted_form(first, linear, kField), kField),
                                 quadratic_form(restricted_form(second, linear, kField), kField)},
                                3, degree, kField));
  }
}

TEST(Defect, ThreeWaysAgreeWithTheProof) {
  for (const std::size_t width : {4, 5}) {
    const DefectCheck check = check_defect(width, 3, [](double) {});
    const std::size_t proved =
        theory::three_layer_defect(static_cast<std::int64_t>(width)).get_ui();
    EXPECT_EQ(check.missing, proved);
    EXPECT_EQ(check.conditions, proved);
    EXPECT_GE(check.zeros, proved);
    EXPECT_EQ(check.not_vanishing, 0u);
    EXPECT_LT(check.control, check.evaluations / 4 + 1);
  }
}

TEST(Defect, EliminationMissesAsManyForms) {
  EXPECT_EQ(degree_seven_rank(4, 2, [](double) {}), 676u);  // of 680
}

TEST(Defect, TheFormsMatterForTheVanishing) {
  // Away from the zeros of any one of the forms the part of degree 7 does not vanish.
  const PrimeField field(101);
  exact::AttentionShape shape;
  shape.layers = 3;
  shape.width = 4;
  shape.positions = 5;
  exact::FieldSampler sampler(11, 1, field);
  const auto weights = exact::random_attention_weights(shape, sampler);
  std::size_t zero = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const FieldVector a = sampler.vector(16);
    zero += degree_seven_part(shape, weights, a, sampler.vector(4), field) == 0 ? 1 : 0;
  }
  EXPECT_LT(zero, 10u);
}

TEST(PartialWidth, SlicesOfTheWholeStreamAreTheResidualNetwork) {
  exact::RankSetting whole = attention_setting(2, 3, 1);
  whole.residual = true;
  exact::RankSetting sliced = whole;
  sliced.stream = 3;
  sliced.stride = 1;
  sliced.output_component = 1;
  EXPECT_EQ(exact::compute_rank(whole).rank, 49u);
  EXPECT_EQ(exact::compute_rank(sliced).rank, 49u);
}

TEST(PartialWidth, DisjointSlicesAreNetworksOfOneLayer) {
  // The last slice has met no other: one layer of width d with its residual, rank d + 1.
  exact::RankSetting setting = attention_setting(2, 3, 1, 12);
  setting.residual = true;
  setting.stream = 6;
  setting.stride = 3;
  setting.output_component = 3;
  EXPECT_EQ(exact::compute_rank(setting).rank, 4u);
}

TEST(RankParts, AResultSurvivesItsRecord) {
  lab::Setup setup;
  const std::vector<Part> parts = rank_parts(setup, {{attention_setting(2, 2, 1)}});
  const exact::RankResult found =
      rank_result(Json::parse(parts.front().compute([](double) {}).dump()));
  EXPECT_EQ(found.rank, 18u);
  EXPECT_EQ(found.status, exact::RankStatus::exact);
  EXPECT_EQ(found.blocks.size(), 5u);
}

}  // namespace
}  // namespace fathom::lab
