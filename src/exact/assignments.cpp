#include "exact/assignments.h"

namespace fathom::exact {

Assignments random_assignments(std::size_t count, std::size_t positions, std::size_t width,
                               const std::vector<PrimeField::Element>& embedding, std::size_t rank,
                               const PrimeField& field, FieldSampler& sampler) {
  Assignments assignments{count, positions, width, {}};
  if (embedding.empty()) {
    assignments.values = sampler.vector(count * positions * width);
    return assignments;
  }
  assignments.values.reserve(count * positions * width);
  for (std::size_t n = 0; n < count * positions; ++n) {
    const std::vector<PrimeField::Element> word = sampler.vector(rank);
    for (std::size_t a = 0; a < width; ++a) {
      assignments.values.push_back(field.dot(&embedding[a * rank], 1, word.data(), rank));
    }
  }
  return assignments;
}

}  // namespace fathom::exact
