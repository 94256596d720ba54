// From measured numbers to a verdict, by the claim's criteria and nothing else.
//
//   a criterion passes  when its number, or the whole of its interval, lies in the range;
//             fails     when it, or the whole interval, lies outside;
//             is open   when the interval straddles an end, or there is no number.
//   a claim   holds     when all criteria pass, fails when all fail, holds in part when some pass
//                       and some fail, and is undecided otherwise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/frame/claim.h"
#include "lab/frame/experiment.h"

namespace fathom::lab {

enum class Outcome : std::uint8_t { passes, fails, open };
constexpr auto enum_names(Outcome) {
  return std::array{"passes", "fails", "open"};
}

struct JudgedCriterion {
  const Criterion* criterion = nullptr;
  Measure measure;
  Outcome outcome = Outcome::open;
};

struct Judgement {
  Verdict verdict = Verdict::undecided;
  std::vector<JudgedCriterion> criteria;
  std::string boundary;  // where a claim that holds in part ends, or why it fails
};

Outcome judge_measure(const Criterion& criterion, const Measure& measure);
Verdict verdict_of(const std::vector<Outcome>& outcomes);

/// Criteria without a measure are left out of a custom run (`own`) and open otherwise;
/// InternalError for a measure whose criterion the claim does not have.
Judgement judge(const Claim& claim, const std::vector<Measure>& measures, bool own);

}  // namespace fathom::lab
