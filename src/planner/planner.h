// The planner: from a budget and constraints to a recommended shape with its evidence.
//
//   budget -> law's optimum (real numbers) -> rounding -> recommendation
//                    \-> band, penalties, other laws, neighbours, objectives
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "laws/law.h"
#include "planner/candidates.h"
#include "shape/catalogue.h"
#include "shape/hardware.h"
#include "shape/parameters.h"
#include "shape/rounding.h"
#include "shape/shape.h"

namespace fathom::planner {

enum class Objective { loss, train_time, decode_latency, accuracy };
std::string to_string(Objective objective);
Objective parse_objective(const std::string& name);
std::vector<std::string> objective_names();

struct PlanRequest {
  std::optional<double> parameters;  // exactly one of parameters and flops
  std::optional<double> flops;
  bool count_embeddings = false;
  std::optional<double> tokens;  // default: 20 per parameter
  std::string law = "levine2020";
  double levine_correlation = 0;
  Objective objective = Objective::loss;
  std::string hardware = "h200";
  double tolerance = 0.005;
  std::int64_t step_tokens = 65536;  // per device, for the time model
  ShapeRequest base;                 // all but layers, width and heads
  RoundingRules rules;
};

/// Levine's regimes for a shape: deeper than the transition depth of its size, shallower, or on it
/// (within one layer or the fit's one-sigma interval).
enum class DepthRegime { efficient, transition, inefficient };
std::string to_string(DepthRegime regime);

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
  Interval band;             // real depths
  double best_layers;        // of the loss law
  std::vector<PenaltyPoint> curve;
  std::vector<LawRow> laws;
  std::vector<ObjectiveRow> objectives;
  std::vector<const CatalogueEntry*> neighbours;
  std::vector<Statement> statements;
  std::vector<std::string> warnings;
  Hardware hardware;
};

/// ConfigError when the request contradicts itself or no shape keeps its constraints.
Plan make_plan(const PlanRequest& request);

/// Chinchilla's rule of thumb.
constexpr double kTokensPerParameter = 20;

}  // namespace fathom::planner
