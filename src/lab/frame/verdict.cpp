#include "lab/frame/verdict.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"

namespace fathom::lab {

Outcome judge_measure(const Criterion& criterion, const Measure& measure) {
  if (!measure.value || std::isnan(*measure.value)) return Outcome::open;
  const Interval range = measure.interval.value_or(Interval{*measure.value, *measure.value});
  if (range.low >= criterion.low && range.high <= criterion.high) return Outcome::passes;
  if (range.high < criterion.low || range.low > criterion.high) return Outcome::fails;
  return Outcome::open;
}

Verdict verdict_of(const std::vector<Outcome>& outcomes) {
  const auto count = [&](Outcome outcome) {
    return std::count(outcomes.begin(), outcomes.end(), outcome);
  };
  const auto all = std::ssize(outcomes);
  if (all == 0) return Verdict::undecided;
  if (count(Outcome::passes) == all) return Verdict::holds;
  if (count(Outcome::fails) == all) return Verdict::fails;
  const bool mixed = count(Outcome::passes) > 0 && count(Outcome::fails) > 0;
  return mixed ? Verdict::holds_in_part : Verdict::undecided;
}

Judgement judge(const Claim& claim, const std::vector<Measure>& measures, bool own) {
  for (const Measure& measure : measures) claim.criterion(measure.criterion);
  Judgement judgement;
  std::vector<Outcome> outcomes;
  std::vector<std::string> boundaries;
  for (const Criterion& criterion : claim.criteria) {
    const auto found = std::find_if(measures.begin(), measures.end(), [&](const Measure& measure) {
      return measure.criterion == criterion.id;
    });
    if (found == measures.end() && own) continue;
    const Measure measure = found == measures.end() ? Measure{criterion.id, {}} : *found;
    const Outcome outcome = judge_measure(criterion, measure);
    judgement.criteria.push_back({&criterion, measure, outcome});
    outcomes.push_back(outcome);
    if (outcome == Outcome::fails && !criterion.boundary.empty()) {
      boundaries.push_back(criterion.boundary);
    }
  }
  judgement.verdict = verdict_of(outcomes);
  judgement.boundary = join(boundaries, "; ");
  return judgement;
}

}  // namespace fathom::lab
