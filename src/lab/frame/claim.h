// A published claim about depth as data: what was said and where, the experiment that tests it, the
// criterion that was fixed before the experiment ran, and what this project has found.
//
// The tables are data/claims.toml and data/trained_claims.toml, compiled in; docs/claims.md is made
// from it (claims_page.h).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"

namespace fathom::lab {

/// exact: no rounding anywhere; computed: floating-point numbers, no training; trained: run specs
/// that the study machinery trains.
enum class Kind : std::uint8_t { exact, computed, trained };
constexpr auto enum_names(Kind) {
  return std::array{"exact", "computed", "trained"};
}

enum class Verdict : std::uint8_t { holds, fails, holds_in_part, undecided };
constexpr auto enum_names(Verdict) {
  return std::array{"holds", "fails", "holds in part", "undecided"};
}

/// What a verdict rests on.
enum class Evidence : std::uint8_t { proof, computation, measurement };
constexpr auto enum_names(Evidence) {
  return std::array{"proof", "exact computation", "measurement"};
}

/// One number that an experiment measures and the range it must lie in for this part of the claim.
struct Criterion {
  std::string id;
  std::string text;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::string boundary;  // what a failure means for the claim

  /// "2.7 to 3.6", "at most 0", "exactly 4".
  std::string range() const;
};

/// What this project found: the verdict of the full experiment and one sentence.
struct Finding {
  Verdict verdict = Verdict::undecided;
  std::string summary;
};

struct Claim {
  std::string id;
  std::string topic;
  std::string topic_about;  // what a reader must know; on the topic's first claim
  std::string title;
  std::string source;  // authors and year
  std::string arxiv;   // number, or "" where there is none
  std::string place;   // theorem, section, table
  std::string statement;
  std::string published;
  std::string experiment;
  Kind kind = Kind::computed;
  Evidence by = Evidence::measurement;
  std::string cpu_cost;      // on two cores; with quick_seconds where it has them
  std::string gpu_cost;      // with gpu_seconds where it has them
  double quick_seconds = 0;  // processor time of --quick; 0: not measured, or no such form
  double gpu_seconds = 0;    // wall time of all on one H200; 0: not measured
  std::string undecided;     // what it would cost to decide, for claims that stay open
  std::string ask;           // options for a question of your own; "" where there are none
  std::string page;          // below docs/, with an anchor where pages are shared
  std::vector<Criterion> criteria;
  Finding finding;

  /// InternalError for a criterion that the claim does not have.
  const Criterion& criterion(std::string_view id) const;
};

/// All claims in the order of the tables.
const std::vector<Claim>& claims();
std::vector<std::string> claim_ids();
/// Those that train models, or those that do not.
std::vector<std::string> claim_ids(bool trained);
/// ConfigError with the nearest id for an unknown one.
const Claim& find_claim(std::string_view id);

/// Reads a table; ConfigError names `origin` and the place. For claims() and its test.
std::vector<Claim> read_claims(std::string_view toml, const std::string& origin);

}  // namespace fathom::lab
