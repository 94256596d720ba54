#include "fits/study_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "core/units.h"
#include "laws/budget.h"
#include "laws/levine.h"

namespace fathom::fits {
namespace {

std::string one_transition(const Transition& t) {
  const std::string pair = fmt::format("{} layers against {}", t.deep, t.shallow);
  switch (t.status) {
    case TransitionStatus::crossing:
      return fmt::format("{} from {} parameters on ({} to {})", pair, format_count(*t.params),
                         format_count(*t.low), format_count(*t.high));
    case TransitionStatus::below_grid:
      return fmt::format("{} from below {}", pair, format_count(*t.high));
    case TransitionStatus::above_grid:
      return fmt::format("{} not before {}", pair, format_count(*t.low));
    case TransitionStatus::unclear:
      return fmt::format("{} undecided", pair);
  }
  return "";
}

std::string transition_sentence(const StudyFit& fit) {
  std::vector<std::string> parts;
  for (const Transition& t : fit.transitions) {
    if (t.adjacent) parts.push_back(one_transition(t));
  }
  if (parts.empty()) return "These runs show no transition: no two depths have comparable curves.";
  return fmt::format("At equal size the deeper network wins: {}.", join(parts, "; "));
}

std::string law_sentence(const StudyFit& fit) {
  if (!fit.law) {
    return "The crossings do not fix a law ln d = a + b·L, so none is given.";
  }
  const ExponentialFit& law = *fit.law;
  const double far = std::max(std::fabs(law.a_score), std::fabs(law.b_score));
  const laws::LevineFit published;
  return fmt::format(
      "The width from which depth L pays is exp({:.3f} ± {:.3f} + ({:.4f} ± {:.4f})·L) from {} "
      "crossings, {} the published {} + {}·L ({:+.1f} and {:+.1f} standard errors).",
      law.a, law.a_error, law.b, law.b_error, law.points.size(),
      far < 2 ? "in agreement with" : "away from", published.a, published.b, law.a_score,
      law.b_score);
}

std::string joint_sentence(const StudyFit& fit) {
  if (!fit.joint) return "No joint law in depth and width can be given.";
  const JointFit& joint = *fit.joint;
  const laws::Budget budget = laws::Budget::non_embedding(fit.params.high, fit.block_coefficient);
  const double tokens = fit.token_rule.at(fit.params.high);
  const auto best = [&](const JointLaw& law) {
    return std::log(laws::least_loss_depth(budget, [&](double layers, double width) {
      return law.loss(layers, width, fit.params.high, tokens);
    }));
  };
  const double layers = std::exp(best(joint.law()));
  const Interval range = replicate_interval(joint, best);
  return fmt::format(
      "The joint law preferred by the data ({}, mean error {:.2f} %{}) puts the best depth at the "
      "largest size trained, {} after {} tokens, at {} layers{}.",
      joint.form.name(), 100 * joint.mean_error,
      joint.holdout_error ? fmt::format(", {:.2f} % on shapes left out", 100 * *joint.holdout_error)
                          : "",
      format_count(fit.params.high), format_count(tokens), format_significant(layers, 2),
      std::isfinite(range.high)
          ? fmt::format(" ({} to {})", format_significant(std::exp(range.low), 2),
                        format_significant(std::exp(range.high), 2))
          : "");
}

}  // namespace

std::vector<std::string> study_answer(const StudyFit& fit) {
  return {transition_sentence(fit), law_sentence(fit), joint_sentence(fit)};
}

}  // namespace fathom::fits
