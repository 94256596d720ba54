// Hardware-friendly shapes that spend a budget, each priced: loss penalty, training time, latency.
#pragma once

#include <optional>
#include <vector>

#include "laws/law.h"
#include "shape/hardware.h"
#include "shape/rounding.h"
#include "shape/shape.h"
#include "shape/timing.h"

namespace fathom::planner {

struct Candidate {
  Shape shape;
  double parameters = 0;             // in the budget's count
  double penalty = 0;                // loss over the best loss at this budget, minus one
  double step_seconds = 0;           // modelled, one device
  double decode_seconds = 0;         // modelled, one token after half a context
  double tokens_to_equal_loss = 0;   // infinite when the shape cannot reach the target
  double seconds_to_equal_loss = 0;  // modelled, one device
  double tokens_per_second = 0;      // modelled, one device
  double train_seconds = 0;          // modelled, one device, the planned tokens

  /// How far it is from the budget, in logarithms.
  double off_budget = 0;
};

struct PricingContext {
  laws::LossSurface surface;
  Hardware hardware;
  std::int64_t step_tokens = kDefaultStepTokens;
};

/// Prices one shape. The target of "equal loss" is the best loss on the surface, allowed
/// `tolerance` above it so that the optimum is not the only shape to reach it.
Candidate price(const Shape& shape, const PricingContext& context, double tolerance);

/// One shape of the lattice for every friendly depth from `depths.low` to `depths.high`, each as
/// near the budget as its depth allows. The constraints of `rules` hold for each.
std::vector<Shape> lattice(const laws::Budget& budget, const Interval& depths,
                           const ShapeRequest& base, const RoundingRules& rules);

/// The exact count of a rounded shape in the budget's terms.
double held_count(const Shape& shape, const laws::Budget& budget);

}  // namespace fathom::planner
