// An independent check of docs/theory.md, section 8: with three layers and one head the part of
// degree 7 in S_B never reaches all polynomials, for 4 <= d <= 12.
//
// The proof says: with a single B vector b, every polynomial in b that this part can be lies in the
// ideal of one linear form alpha.b and two quadrics b^T N b, b^T Q b made of the weights. Three
// things are computed for random weights over a prime field, none by the code of the rank tables:
//
//   missing     forms of degree 14 outside that ideal, by Macaulay's matrix;
//   vanishing   the network itself, straight from eq. (3) of arXiv 2006.12467: at common zeros b of
//               the three forms (found by search over a small field) its degree-7 part must be 0;
//   conditions  how many independent conditions those zeros put on forms of degree 14: at least
//               that many forms are missing, whatever the ideal's dimension.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exact/attention_network.h"
#include "exact/prime_field.h"
#include "lab/frame/experiment.h"
#include "lab/frame/field_matrix.h"

namespace fathom::lab {

/// The forms of the ideal for one head's weights, output component 0.
struct DefectForms {
  FieldVector alpha;
  FieldMatrix first, second;  // N and Q
};
DefectForms defect_forms(const exact::AttentionWeights<exact::PrimeField::Element>& weights,
                         std::size_t width, const exact::PrimeField& field);

/// The part of degree 7 in b b^T of the network's output, with the A vectors given.
exact::PrimeField::Element degree_seven_part(
    const exact::AttentionShape& shape,
    const exact::AttentionWeights<exact::PrimeField::Element>& weights, const FieldVector& inputs_a,
    const FieldVector& b, const exact::PrimeField& field);

struct DefectCheck {
  std::size_t width = 0;
  std::size_t forms = 0;       // of degree 14 in d variables
  std::size_t missing = 0;     // outside the ideal
  std::size_t zeros = 0;       // common zeros that were found, up to scale
  std::size_t conditions = 0;  // that they put on the forms
  std::size_t evaluations = 0;
  std::size_t not_vanishing = 0;  // evaluations at zeros that are not 0
  std::size_t control = 0;        // evaluations at other points that are 0
};

/// Rank of the degree-7 block with one B position, computed as in the rank tables, on a grid with a
/// row and a column for every form of degree 14.
std::size_t degree_seven_rank(std::size_t width, std::uint64_t seed, const Ticker& tick);

/// For 4 <= width <= 6. A pure function of width and seed.
DefectCheck check_defect(std::size_t width, std::uint64_t seed, const Ticker& tick);

}  // namespace fathom::lab
