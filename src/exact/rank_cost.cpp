#include "exact/rank_cost.h"

#include <algorithm>
#include <cmath>

#include "core/counts.h"

namespace fathom::exact {
namespace {

/// Multiply-adds of one value and the time of one of them, eight columns at a time.
struct ValueCost {
  double operations = 0;
  double seconds_each = 0;
};

ValueCost value_cost(const RankSetting& setting, Method method) {
  const double n = as_double(setting.positions);
  const double d = as_double(setting.width);
  const double layers = as_double(setting.layers);
  if (setting.family == Family::conv) {
    return {2 * n * d * std::max(d, as_double(setting.inputs)), 6e-10};
  }
  if (setting.family == Family::recurrent) {
    return {2 * n * layers * d * std::max(d, as_double(setting.inputs)), 5e-10};
  }
  if (method == Method::gram) {
    const double letters = (std::pow(3.0, layers) - 1) / 2;  // Gram matrices in the word
    return {d * d * letters * (1 + (as_double(setting.heads) - 1) / 3), 4e-10};
  }
  // Small networks spend five times as much on each operation.
  const double operations = layers * (4 * n * d * d + 2 * n * n * d);
  return {operations + n * as_double(setting.position_dimension()),
          operations < 1e5 ? 3e-10 : 6e-11};
}

}  // namespace

double grid_seconds(const RankSetting& setting, Method method,
                    const std::vector<std::size_t>& sides) {
  constexpr double kEliminationStep = 3e-11;
  constexpr double kPreparationStep = 1e-8;  // Gram matrices of all assignments
  double largest = 0;
  double elimination = 0;
  for (const std::size_t side : sides) {
    largest = std::max(largest, as_double(side));
    elimination += std::pow(as_double(side), 3) * kEliminationStep;
  }
  const ValueCost value = value_cost(setting, method);
  const double values = largest * largest * as_double(sides.size());
  double seconds = values * value.operations * value.seconds_each + elimination;
  if (method == Method::gram) {
    const double d = as_double(setting.width);
    seconds += 2 * largest * as_double(setting.positions) * d * d * kPreparationStep;
  }
  return seconds;
}

}  // namespace fathom::exact
