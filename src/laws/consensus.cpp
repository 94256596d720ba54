#include "laws/consensus.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace fathom::laws {
namespace {

/// Half the interval of the optimum, in ln L.
double log_error(const Optimum& optimum) {
  if (!optimum.layers_interval) return 0;
  return std::log(optimum.layers_interval->high / optimum.layers_interval->low) / 2;
}

void widen(Interval& range, const Interval& other) {
  range.low = std::min(range.low, other.low);
  range.high = std::max(range.high, other.high);
}

Vote make_vote(const LawPointer& law, const Budget& budget, double tokens) {
  Vote vote;
  vote.law = law;
  vote.optimum = law->optimum_after(budget, tokens);
  const double layers = vote.optimum.layers;
  vote.distance =
      law->info().fitted
          ? distance_outside(law->info(), {budget.block_parameters_at(layers), tokens, layers})
          : 0;
  const double own = log_error(vote.optimum);
  const double beyond = kExtrapolationError * vote.distance;
  vote.weight = 1 / (own * own + kLawSpread * kLawSpread + beyond * beyond);
  vote.borrows = !law->has_loss();
  return vote;
}

}  // namespace

Consensus::Consensus(const std::vector<LawPointer>& voters, LawPointer donor, const Budget& budget,
                     double tokens)
    : donor_(std::move(donor)), budget_(budget) {
  if (voters.empty() || !donor_->has_loss()) {
    throw InternalError("a consensus needs a voter and a donor with a loss");
  }
  double sum = 0;
  for (const LawPointer& law : voters) {
    votes_.push_back(make_vote(law, budget, tokens));
    sum += votes_.back().weight;
  }
  const LossSurface lent(*donor_, budget, tokens);
  donor_layers_ = lent.best_layers();
  for (Vote& vote : votes_) {
    vote.weight /= sum;
    vote.best_loss =
        vote.borrows ? lent.best_loss() : LossSurface(*vote.law, budget, tokens).best_loss();
    reference_loss_ += vote.weight * vote.best_loss;
  }
  if (votes_.size() == 1) {
    info_ = votes_.front().law->info();
    return;
  }
  info_.parameters = info_.layers = {HUGE_VAL, 0};
  info_.tokens = info_.layers;
  for (const Vote& vote : votes_) {
    const LawInfo& own = vote.law->info();
    if (vote.borrows) continue;  // it says nothing about losses
    widen(info_.parameters, own.parameters);
    widen(info_.layers, own.layers);
    if (own.tokens) widen(*info_.tokens, *own.tokens);
  }
  info_.name = kName;
  info_.title = "Consensus of the laws";
  info_.source = "docs/counting.md";
  info_.claim = "least expected loss over the laws, weighted by how well each knows this place";
  info_.interval_meaning = "spread of the laws, weighted by their votes";
}

double Consensus::voter_loss(const Vote& vote, double layers, double width, double parameters,
                             double tokens) const {
  if (!vote.borrows) return *vote.law->loss(layers, width, parameters, tokens);
  // The donor's loss at the depth that lies as far from its optimum as this one from the voter's.
  const double moved = layers * donor_layers_ / vote.optimum.layers;
  const double narrower = budget_.width_at(moved) / budget_.width_at(layers);
  return *donor_->loss(moved, width * narrower, parameters, tokens);
}

std::optional<double> Consensus::loss(double layers, double width, double parameters,
                                      double tokens) const {
  double sum = 0;
  for (const Vote& vote : votes_) {
    sum += vote.weight * voter_loss(vote, layers, width, parameters, tokens) / vote.best_loss;
  }
  return reference_loss_ * sum;
}

Optimum Consensus::optimum(const Budget& budget) const {
  if (votes_.size() == 1) return votes_.front().optimum;
  // Any count of tokens will do: the forms are additive in it.
  constexpr double kTokens = 1e10;
  const double layers = least_loss_depth(budget, [&](double depth, double width) {
    return *loss(depth, width, budget.parameters(), kTokens);
  });
  double variance = 0;
  for (const Vote& vote : votes_) {
    const double off = std::log(vote.optimum.layers / layers);
    variance += vote.weight * off * off;
  }
  const double factor = std::exp(std::sqrt(variance));
  return {std::max(kMinLayers, layers), budget.width_at(std::max(kMinLayers, layers)),
          Interval{layers / factor, layers * factor}};
}

std::vector<std::string> Consensus::objections(const Budget& budget, double tokens) const {
  if (votes_.size() > 1) return {};
  return votes_.front().law->objections(budget, tokens);
}

Evidence Consensus::evidence(const Place& place) const {
  Evidence best = Evidence::convention;
  for (const Vote& vote : votes_) {
    const Evidence own = vote.law->evidence(place);
    if (own == Evidence::fitted) return own;
    if (own == Evidence::extrapolated) best = own;
  }
  return best;
}

Evidence Consensus::loss_evidence(const Place& place) const {
  for (const Vote& vote : votes_) {
    if (!vote.borrows && vote.law->evidence(place) == Evidence::fitted) return Evidence::fitted;
  }
  return Evidence::extrapolated;
}

std::vector<LawPointer> measured_laws() {
  std::vector<LawPointer> laws;
  for (const LawPointer& law : published_laws()) {
    if (law->info().fitted) laws.push_back(law);
  }
  return laws;
}

}  // namespace fathom::laws
