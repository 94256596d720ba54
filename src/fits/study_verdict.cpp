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

/// How loosely a decided pair is determined: crossings by their interval, then bounds.
double looseness(const Transition& t) {
  return t.status == TransitionStatus::crossing ? std::log(*t.high / *t.low) : 1e9;
}

/// Neighbouring depths: the best determined are given in order of depth, the rest are counted.
std::string transition_sentence(const std::vector<Transition>& transitions) {
  constexpr std::size_t kTold = 4;
  std::vector<const Transition*> decided;
  std::size_t neighbours = 0;
  for (const Transition& t : transitions) {
    neighbours += t.adjacent;
    if (t.adjacent && t.status != TransitionStatus::unclear) decided.push_back(&t);
  }
  if (neighbours == 0) {
    return "These runs show no transition: no two depths have comparable curves.";
  }
  if (decided.empty()) {
    return "These runs do not determine from which size on a deeper network wins, for any two "
           "depths.";
  }
  std::vector<const Transition*> told = decided;
  std::stable_sort(told.begin(), told.end(), [](const Transition* a, const Transition* b) {
    return looseness(*a) < looseness(*b);
  });
  told.resize(std::min(told.size(), kTold));
  std::sort(told.begin(), told.end(),
            [](const Transition* a, const Transition* b) { return a->deep < b->deep; });
  std::vector<std::string> parts;
  for (const Transition* t : told) parts.push_back(one_transition(*t));
  if (decided.size() > told.size()) {
    parts.push_back(fmt::format("{} more pairs in the table", decided.size() - told.size()));
  }
  if (decided.size() < neighbours) {
    parts.push_back(fmt::format("{} of {} neighbouring pairs undecided",
                                neighbours - decided.size(), neighbours));
  }
  return fmt::format("At equal size the deeper network wins: {}.", join(parts, "; "));
}

std::string layers_text(double layers) {
  return layers < 9.95 ? fmt::format("{:.1f}", layers) : fmt::format("{:.0f}", layers);
}

std::string best_depth_text(const BestDepth& best) {
  const std::string size = format_count(best.params);
  if (best.low && best.high) {
    return fmt::format("{} layers at {} parameters (95 %: {} to {})", layers_text(best.layers),
                       size, layers_text(*best.low), layers_text(*best.high));
  }
  if (best.low) return fmt::format("more than {} layers at {}", layers_text(*best.low), size);
  if (best.high) return fmt::format("fewer than {} layers at {}", layers_text(*best.high), size);
  return fmt::format("not determined at {}", size);
}

/// The headline: the largest size, and the smallest whose best depth has two bounds.
std::string best_depth_sentence(const SurfaceFit& surface) {
  const BestDepth& largest = surface.best_depth.back();
  const BestDepth* other = nullptr;
  for (const BestDepth& best : surface.best_depth) {
    if (best.low && best.high && best.params < largest.params / 3) {
      other = &best;
      break;
    }
  }
  if (!largest.low && !largest.high && other == nullptr) {
    return "These runs do not determine which depth is best at any of their sizes.";
  }
  const bool both = largest.low && largest.high;
  return fmt::format("The best depth on this text is {}{}{}.", best_depth_text(largest),
                     other ? ", and " + best_depth_text(*other) : "",
                     both ? "; shallower and deeper networks of the same size learn less" : "");
}

std::string odds_text(double odds) {
  return odds > 1000 ? "more than 1000 to 1" : fmt::format("{:.{}f} to 1", odds, odds < 10 ? 1 : 0);
}

/// The law, and whether it is exponential.
std::string form_sentence(const SurfaceFit& surface) {
  if (!surface.fixes_law()) {
    return "These runs do not determine how the best depth grows with size: that takes more sizes.";
  }
  const laws::LevineFit published;
  const LawConstants& own = surface.law;
  std::string law = fmt::format(
      "Written as \"L layers are best at width exp(a + b·L)\", a is {:.2f} ± {:.2f} and b {:.3f} ± "
      "{:.3f}",
      own.a, own.a_error, own.b, own.b_error);
  if (surface.transition_reading) {
    const LawConstants& read = surface.transition_reading->law;
    law += fmt::format(
        " (by the widths from which the deeper of two depths wins, the reading of the published "
        "{}: {:.2f} ± {:.2f} and {:.3f} ± {:.3f})",
        published.formula(), read.a, read.a_error, read.b, read.b_error);
  }
  const double odds = std::max(surface.exponential_odds, 1 / surface.exponential_odds);
  const bool exponential = surface.exponential_odds > 1;
  if (odds < 3) {
    return fmt::format(
        "{}; these runs cannot tell whether depth grows that way or as a power of size, N^{:.2f} "
        "(odds {}).",
        law, surface.slope, odds_text(odds));
  }
  return fmt::format(
      "{}; the runs {} {} (odds {}).", law, odds < 20 ? "lean towards" : "favour",
      exponential
          ? std::string("that exponential law over a power of size")
          : fmt::format("a power of size, N^{:.2f}, over that exponential law", surface.slope),
      odds_text(odds));
}

std::string length_sentence(const LengthMove& move) {
  const double half = std::pow(2, move.move);
  const std::string range = fmt::format("95 %: {:.2f} to {:.2f}", std::pow(2, move.interval.low),
                                        std::pow(2, move.interval.high));
  if (!move.moves()) {
    return fmt::format(
        "Training twice as long does not visibly move the size from which depth "
        "pays (times {:.2f}, {}).",
        half, range);
  }
  return fmt::format(
      "Training twice as long moves the size from which depth pays by a factor of "
      "{:.2f} ({}).",
      half, range);
}

std::string law_sentence(const StudyFit& fit) {
  if (!fit.law) {
    return "The crossings do not fix a law ln d = a + b·L, so none is given.";
  }
  const ExponentialFit& law = *fit.law;
  const std::string formula = fmt::format(
      "The width from which depth L pays is exp({:.3f} ± {:.3f} + ({:.4f} ± {:.4f})·L) from {} "
      "crossings",
      law.a, law.a_error, law.b, law.b_error, law.points.size());
  const std::string published = laws::LevineFit{}.formula();
  // Two crossings fix a line exactly; nothing is left to test it with.
  if (law.points.size() < 3) {
    return fmt::format("{}, too few to compare it with the published {}.", formula, published);
  }
  const double far = std::max(std::fabs(law.a_score), std::fabs(law.b_score));
  const bool wide = law.b <= 2 * law.b_error;
  return fmt::format("{}, {} the published {} ({:+.1f} and {:+.1f} standard errors).", formula,
                     far >= 2 ? "away from"
                     : wide   ? "too wide to test"
                              : "in agreement with",
                     published, law.a_score, law.b_score);
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
  if (!fit.surface) {
    return {transition_sentence(fit.transitions), law_sentence(fit), joint_sentence(fit)};
  }
  std::vector<std::string> answer{best_depth_sentence(*fit.surface),
                                  transition_sentence(fit.surface->crossings),
                                  form_sentence(*fit.surface)};
  if (fit.surface->length_move) answer.push_back(length_sentence(*fit.surface->length_move));
  return answer;
}

}  // namespace fathom::fits
