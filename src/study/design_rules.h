// The [design] table of a study: what is to be decided, how well, at what cost and with which
// shapes. The runs are then chosen round by round (fits/run_design.h); [grid], where there is one,
// is the first round.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/spec_keys.h"
#include "fits/run_design.h"

namespace fathom::study {

enum class CostUnit : std::uint8_t { seconds, flops, runs };
constexpr auto enum_names(CostUnit) {
  return std::array{"seconds", "FLOPs", "runs"};
}

struct DesignRules {
  std::vector<std::string> decide;
  std::vector<double> error;
  double seconds = 0;
  double flops = 0;
  double runs = 0;
  std::vector<std::int64_t> depths;
  std::vector<double> sizes;
  std::int64_t head_size = 16;
  std::int64_t min_width = 64;
  double round_share = 0.1;

  // From the keys.
  std::vector<fits::DesignGoal> goals;
  CostUnit unit = CostUnit::runs;
  double budget = 0;

  fits::CandidateLimits limits() const;
  /// Everything the choice of runs depends on except the budget, as TOML.
  std::string text() const;

  template <class Self, class Visitor>
  static void visit_keys(Self& design, Visitor& key) {
    visit_choice_keys(design, key);
    key("seconds", design.seconds, "budget: seconds of training on this machine", {.low = 0});
    key("flops", design.flops, "or: training FLOPs", {.low = 0});
    key("runs", design.runs, "or: number of runs", {.low = 0});
  }

 private:
  template <class Self, class Visitor>
  static void visit_choice_keys(Self& design, Visitor& key) {
    key("decide", design.decide,
        "\"a\", \"b\", \"12 over 6\", \"best depth at 10M\", \"form\" (exponential or power law)");
    key("error", design.error,
        "target standard error of each: of a (0.3), b (0.03), ln N of a crossing (0.2), ln L of a "
        "best depth (0.16); for the form the odds (20)");
    key("depths", design.depths, "allowed numbers of layers");
    key("sizes", design.sizes, "smallest and largest allowed N = 12 L D^2");
    key("head_size", design.head_size, "16 or 32; heads = width / head_size", {16, 32});
    key("min_width", design.min_width, "narrower shapes are not trained", {16, 1 << 17});
    key("round_share", design.round_share, "largest share of the budget for one round", {0.01, 1});
  }
};

/// Absent when the file has no such table. ConfigError for contradictions within the table.
std::optional<DesignRules> read_design(TomlReader& file);

}  // namespace fathom::study
