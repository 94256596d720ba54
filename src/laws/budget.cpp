#include "laws/budget.h"

#include <fmt/format.h>

#include <cmath>

#include "core/counts.h"

namespace fathom::laws {

Budget Budget::non_embedding(double parameters, double block_coefficient) {
  return {parameters, block_coefficient, 0};
}

Budget Budget::total(double parameters, std::int64_t vocab, bool tied, double block_coefficient) {
  return {parameters, block_coefficient, as_double(vocab) * (tied ? 1 : 2)};
}

std::string Budget::description() const {
  const std::string block = fmt::format("{:.4g}·L·d²", block_coefficient_);
  return counts_embeddings()
             ? fmt::format("{} + {:.0f}·d, embeddings counted", block, embedding_rows_)
             : block + ", embeddings not counted";
}

double Budget::width_at(double layers) const {
  // c L d^2 + e d - N = 0, written so that a large e loses no digits.
  const double a = block_coefficient_ * layers;
  const double e = embedding_rows_;
  return 2 * parameters_ / (e + std::sqrt(e * e + 4 * a * parameters_));
}

double Budget::block_parameters_at(double layers) const {
  const double width = width_at(layers);
  return block_coefficient_ * layers * width * width;
}

bool Budget::is_paper_count() const {
  return !counts_embeddings() && block_coefficient_ == kPaperBlockCoefficient;
}

double Budget::parameters_of(double layers, double width) const {
  return block_coefficient_ * layers * width * width + embedding_rows_ * width;
}

}  // namespace fathom::laws
