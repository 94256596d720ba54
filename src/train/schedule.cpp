#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/counts.h"

namespace fathom::train {

double Schedule::factor(std::int64_t step) const {
  if (step < warmup) return as_double(step + 1) / as_double(warmup);
  const auto rest = as_double(std::max<std::int64_t>(1, steps - warmup));
  const double t = std::min(1.0, as_double(step - warmup) / rest);
  switch (kind) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::cosine:
      return floor + (1 - floor) * (1 + std::cos(std::numbers::pi * t)) / 2;
    case ScheduleKind::linear:
      return 1 - (1 - floor) * t;
    case ScheduleKind::wsd: {
      const double into_decay = (t - (1 - decay)) / decay;
      return into_decay <= 0 ? 1 : 1 - (1 - floor) * into_decay;
    }
  }
  return 1;
}

}  // namespace fathom::train
