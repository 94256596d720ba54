// What several laws together say about one budget: the depth of least expected loss.
//
//   penalty(L) = sum_i w_i penalty_i(L),   w_i ~ 1 / (s_i^2 + tau^2 + (kappa r_i)^2)
//
// penalty_i is the loss of depth L under law i over its best on the same surface. A law's vote w_i
// is the inverse variance of its ln L*: s_i is its own standard error (half its interval), tau the
// spread between laws, r_i the logarithmic distance of its optimum from its data in size, tokens
// and depth (distance_outside). Inside their data, votes are nearly equal, because tau dominates;
// outside, a vote falls to a third at twice the edge and to a twentieth at ten times. Where no law
// has data, all of them still vote, the nearest most. A law without a loss of its own borrows the
// curve of the first voter that has one, moved in ln L to its own optimum.
//
// With equal tokens per parameter the consensus rises with the budget; tests/planner checks this on
// a dense grid.
#pragma once

#include "laws/law.h"

namespace fathom::laws {

/// Standard deviation of ln L* over Levine, Gemstones and Liu at 550M parameters and 11B tokens,
/// where all three are inside their data; a test recomputes it.
inline constexpr double kLawSpread = 0.27;
/// Error of an extrapolated ln L* per factor e beyond the data. A choice, not a measurement.
inline constexpr double kExtrapolationError = 0.5;

struct Vote {
  LawPointer law;
  Optimum optimum;
  double distance = 0;  // of the optimum from the law's data
  double weight = 0;    // the weights of all votes add up to 1
  double best_loss = 0;
  bool borrows = false;  // its curve is the donor's

  bool inside() const { return distance == 0; }
};

class Consensus : public Law {
 public:
  static constexpr const char* kName = "consensus";

  /// `donor` lends its curve to voters without a loss; InternalError when it has none itself or
  /// there are no voters. With one voter this is that law, given a loss.
  Consensus(const std::vector<LawPointer>& voters, LawPointer donor, const Budget& budget,
            double tokens);

  const LawInfo& info() const override { return info_; }
  /// The interval is the voters' weighted spread about the optimum. The votes remain those of the
  /// budget it was made for.
  Optimum optimum(const Budget& budget) const override;
  std::optional<double> loss(double layers, double width, double parameters,
                             double tokens) const override;
  /// Those of a single voter.
  std::vector<std::string> objections(const Budget& budget, double tokens) const override;
  /// Fitted where at least one voter is inside its data.
  Evidence evidence(const Place& place) const override;
  /// Fitted where at least one voter with a loss of its own is.
  Evidence loss_evidence(const Place& place) const override;

  const std::vector<Vote>& votes() const { return votes_; }

 private:
  double voter_loss(const Vote& vote, double layers, double width, double parameters,
                    double tokens) const;

  LawPointer donor_;
  Budget budget_;
  double donor_layers_ = 0;
  double reference_loss_ = 0;
  std::vector<Vote> votes_;
  LawInfo info_;
};

/// The published laws that were fitted to measured losses, in the order they are shown.
std::vector<LawPointer> measured_laws();

}  // namespace fathom::laws
