// Every count of one shape, and its place among the laws.
#pragma once

#include <vector>

#include "laws/law.h"
#include "shape/find_shape.h"
#include "shape/flops.h"
#include "shape/hardware.h"
#include "shape/memory.h"
#include "shape/parameters.h"
#include "shape/timing.h"

namespace fathom::planner {

/// Where a law would have put the depth at this shape's own 12 L d^2.
struct LawPlace {
  laws::LawInfo info;
  laws::Optimum optimum;
  double layers_deeper;  // of the shape than the law
  laws::Evidence evidence;
};

/// What the laws together say about this shape at its own size and tokens.
struct ConsensusPlace {
  laws::Optimum optimum;
  double penalty = 0;  // loss of its depth over the best
  Interval band;       // within kDefaultTolerance
  laws::Evidence evidence;
};

struct ShapeReport {
  NamedShape subject;
  ParameterCount parameters;
  FlopCount flops;
  TrainingMemory memory;
  double kv_bytes_per_token;
  std::int64_t batch;  // sequences of a full cache
  double kv_bytes;     // of it
  StepTime step;
  double share_of_peak;  // of the modelled step
  DecodeTime decode;     // one token after half a context
  double latency_crossover_width;
  Hardware hardware;
  std::int64_t step_tokens;
  double transition_width;  // Levine's, at this depth
  std::vector<LawPlace> places;
  std::optional<ConsensusPlace> consensus;        // dense models only: the laws cover no others
  std::vector<const CatalogueEntry*> neighbours;  // the shape itself left out

  /// At or above Levine's transition width.
  bool depth_pays() const;
  /// Narrower than the crossover: depth, not weight traffic, sets the latency of one sequence.
  bool depth_sets_latency() const;
};

ShapeReport report_shape(const NamedShape& subject, const Hardware& hardware,
                         std::int64_t step_tokens, std::int64_t batch = 1);

}  // namespace fathom::planner
