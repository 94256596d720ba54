// The planner: from a budget and constraints to a recommended shape with its evidence.
//
//   budget -> law's optimum (real numbers) -> rounding -> recommendation
//                    \-> band, penalties, other laws, neighbours, objectives
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "laws/law.h"
#include "laws/levine.h"
#include "planner/candidates.h"
#include "shape/catalogue.h"
#include "shape/hardware.h"
#include "shape/parameters.h"
#include "shape/rounding.h"
#include "shape/shape.h"
#include "shape/timing.h"

namespace fathom::planner {

enum class Objective { loss, train_time, decode_latency, accuracy };
constexpr auto enum_names(Objective) {
  return std::array{"loss", "train-time", "decode-latency", "accuracy"};
}

/// Chinchilla's rule of thumb (arXiv 2203.15556).
inline constexpr double kTokensPerParameter = 20;
/// How far above the best loss a depth of the band may be.
inline constexpr double kDefaultTolerance = 0.005;

struct PlanRequest {
  std::optional<double> parameters;  // exactly one of parameters and flops
  std::optional<double> flops;
  bool count_embeddings = false;
  std::optional<double> tokens;  // default: kTokensPerParameter of each
  std::string law = laws::LevineLaw::kName;
  double levine_correlation = 0;
  Objective objective = Objective::loss;
  std::string hardware = kDefaultHardware;
  double tolerance = kDefaultTolerance;
  std::int64_t step_tokens = kDefaultStepTokens;  // per device, for the time model
  ShapeRequest base;                              // everything but layers, width and heads
  RoundingRules rules;
};

/// Levine's regimes for a shape: deeper than the transition depth of its size, shallower, or on it
/// (within one layer or the fit's one-sigma interval).
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
  double penalty;                // of its depth under the plan's loss law
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
  DepthRegime regime;        // of the recommended shape
  double transition_width;   // d_x at the recommended depth
  double transition_layers;  // the depth whose transition has this shape's 12 L d^2
  double theory_threshold;   // log3 of the width
  laws::LawInfo loss_law;    // where band and penalties come from
  laws::Evidence loss_law_evidence;
  Interval band;       // real depths
  double best_layers;  // of the loss law
  std::vector<PenaltyPoint> curve;
  std::vector<LawRow> laws;
  std::vector<ObjectiveRow> objectives;
  std::vector<const CatalogueEntry*> neighbours;
  std::vector<Statement> statements;
  std::vector<std::string> warnings;
  Hardware hardware;
};

/// ConfigError when the request contradicts itself or no shape satisfies its constraints.
Plan make_plan(const PlanRequest& request);

}  // namespace fathom::planner
