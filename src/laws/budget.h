// A budget: which count is held constant, and the surface of (depth, width) pairs that spend it.
//
// The papers count c L d^2 with c = 12 (no embeddings; kPaperBlockCoefficient). With embeddings
// counted it is c L d^2 + e V d, e = 1 tied, 2 untied. Grouped-query heads or another feed-forward
// ratio change c. Depth and width are real numbers here; rounding to a shape comes last.
#pragma once

#include <cstdint>
#include <string>

#include "shape/parameters.h"

namespace fathom::laws {

class Budget {
 public:
  /// c L d^2 = parameters.
  static Budget non_embedding(double parameters, double block_coefficient = kPaperBlockCoefficient);
  /// c L d^2 + embeddings V d = parameters.
  static Budget total(double parameters, std::int64_t vocab, bool tied,
                      double block_coefficient = kPaperBlockCoefficient);

  double parameters() const { return parameters_; }
  double block_coefficient() const { return block_coefficient_; }
  bool counts_embeddings() const { return embedding_rows_ > 0; }
  /// As text: "12·L·d², embeddings not counted".
  std::string description() const;

  /// The width that spends the budget at this depth.
  double width_at(double layers) const;
  /// c L d^2 at this depth: what the laws call N.
  double block_parameters_at(double layers) const;
  double parameters_of(double layers, double width) const;
  /// Whether the budget is in the papers' own count, 12 L d^2.
  bool is_paper_count() const;

 private:
  Budget(double parameters, double block_coefficient, double embedding_rows)
      : parameters_(parameters),
        block_coefficient_(block_coefficient),
        embedding_rows_(embedding_rows) {}

  double parameters_;
  double block_coefficient_;
  double embedding_rows_;  // e V
};

}  // namespace fathom::laws
