#include "probe/layer_class.h"

#include <cmath>

namespace fathom::probe {

LayerClass classify(const Cost& removal, double influence) {
  if (!std::isfinite(removal.error)) return LayerClass::undecided;
  if (removal.high < kIdleCost && removal.low > -kIdleCost && influence < kIdleInfluence) {
    return LayerClass::idle;
  }
  if (removal.high < 0) return LayerClass::harmful;
  if (removal.low < 0 && removal.high > kCheapCost) return LayerClass::undecided;
  if (removal.mean < kCheapCost) return LayerClass::cheap;
  if (removal.mean < kWorkingCost) return LayerClass::working;
  return removal.mean < kImportantCost ? LayerClass::important : LayerClass::critical;
}

bool is_settled(const Cost& cost) {
  constexpr double kShare = 0.1, kSmall = 0.002;
  return std::isfinite(cost.error) &&
         (cost.error <= kShare * std::abs(cost.mean) || cost.error <= kSmall);
}

}  // namespace fathom::probe
