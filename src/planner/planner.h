// The planner: from a budget and constraints to a recommended shape with its evidence.
//
//   budget -> votes of the laws -> optimum (real numbers) -> lattice -> pick -> verdict
//                    \-> band, penalties, other laws, neighbours, objectives
//
// The rule: among the lattice shapes that meet the budget, the pick has the least expected loss:
// the laws' penalties averaged by their votes (laws/consensus.h). Other objectives choose inside
// the band of that same average.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "laws/consensus.h"
#include "laws/law.h"
#include "laws/levine.h"
#include "planner/candidates.h"
#include "shape/catalogue.h"
#include "shape/hardware.h"
#include "shape/parameters.h"
#include "shape/rounding.h"
#include "shape/shape.h"
#include "shape/sharding.h"
#include "shape/timing.h"

namespace fathom::planner {

enum class Objective { loss, train_time, decode_latency };
constexpr auto enum_names(Objective) {
  return std::array{"loss", "train-time", "decode-latency"};
}

using laws::kTokensPerParameter;
/// How far above the best loss a depth of the band may be.
inline constexpr double kDefaultTolerance = 0.005;

struct PlanRequest {
  std::optional<double> parameters;  // exactly one of parameters and flops
  std::optional<double> flops;
  bool count_embeddings = false;
  std::optional<double> tokens;  // default: this many per parameter
  double tokens_per_parameter = kTokensPerParameter;
  std::string law = laws::Consensus::kName;
  double levine_correlation = 0;
  Objective objective = Objective::loss;
  std::string hardware = kDefaultHardware;
  double tolerance = kDefaultTolerance;
  std::int64_t step_tokens = kDefaultStepTokens;  // per device, for the time model
  ShapeRequest base;                              // everything but layers, width and heads
  RoundingRules rules;
  // How it is trained; tensor and pipeline degrees are those of `rules`.
  std::int64_t gpus = 0;  // 0: one copy, tensor times pipeline
  std::int64_t zero = 0;
  std::int64_t micro_batch = 1;
  bool recompute = false;
};

/// Levine's regimes for a shape: deeper than the transition depth of its size, shallower, or on it
/// (within one layer or the fit's one-sigma interval). Undefined outside the law's data.
enum class DepthRegime { efficient, transition, inefficient };
constexpr auto enum_names(DepthRegime) {
  return std::array{"depth-efficient", "transition", "depth-inefficient"};
}

struct Statement {
  laws::Evidence evidence;
  std::string text;
};

struct LawRow {
  laws::LawInfo info;
  laws::Optimum optimum;
  laws::Evidence evidence;
  std::optional<Interval> band;  // its own, when it has a loss
  double penalty;                // of its depth under the plan's law
  double vote = 0;               // its weight in the consensus
  std::string outside;           // where it leaves its data, as text
};

/// The whole depths inside a band.
struct WholeDepths {
  std::int64_t low, high;
};
WholeDepths whole_depths(const Interval& band);

struct PenaltyPoint {
  double layers;
  double width;
  double penalty;
};

struct ObjectiveRow {
  Objective objective;
  Candidate candidate;
  std::string rule;  // how it was chosen
};

/// One plain answer, derived from the numbers of the plan; text and JSON are views of it.
struct Verdict {
  laws::Evidence evidence = laws::Evidence::extrapolated;  // of the pick
  std::string reason;                                      // why it has that mark
  WholeDepths equals{};  // as good as the pick, clipped at what was trained
  bool clipped_low = false, clipped_high = false;
  laws::Evidence equals_evidence = laws::Evidence::extrapolated;
  std::optional<Candidate> wider, deeper;  // the ends of the equals on the lattice
  Interval laws_range;                     // depths recommended by the laws with enough weight
  std::string lowest_law, highest_law;
  bool laws_disagree = false;               // by more than half
  std::optional<PublishedDepths> practice;  // depths of published models of this size
  bool leaves_practice = false;             // the pick is outside them
  std::vector<std::string> sentences;       // the first is the answer itself
};

/// A law that was asked for but is not planned with.
struct RefusedLaw {
  laws::LawInfo info;
  std::vector<std::string> reasons;
};

struct Plan {
  PlanRequest request;
  laws::Budget budget;
  double tokens;
  laws::LawInfo law;
  laws::Evidence law_evidence;
  laws::Optimum unrounded;
  Candidate recommendation;
  ParameterCount parameters;
  double train_flops;
  std::optional<DepthRegime> regime;  // of the recommended shape, inside Levine's data
  double transition_width;            // d_x at the recommended depth
  double transition_layers;           // the depth whose transition has this shape's 12 L d^2
  double theory_threshold;            // log3 of the width
  laws::LawInfo loss_law;             // where band and penalties come from
  laws::Evidence loss_law_evidence;   // of a penalty at the recommended shape
  Interval band;                      // real depths
  double best_layers;                 // of the loss law
  std::vector<PenaltyPoint> curve;
  std::vector<Candidate> lattice;  // by depth, those that meet the budget
  std::vector<LawRow> laws;
  Verdict verdict;
  std::vector<ObjectiveRow> objectives;
  std::vector<const CatalogueEntry*> neighbours;
  std::vector<Statement> statements;
  std::vector<std::string> warnings;
  std::optional<RefusedLaw> refused;  // the consensus is used in its place
  Sharding sharding;
  DeviceMemory device_memory;
  std::string memory;               // of one GPU, as text
  std::optional<Sharding> fitting;  // what would fit, where this does not
  Hardware hardware;
};

/// ConfigError when the request contradicts itself or no shape satisfies its constraints.
Plan make_plan(const PlanRequest& request);

}  // namespace fathom::planner
