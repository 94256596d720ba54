// The learning rate of a step, as a factor of the peak: linear warm-up, then
//
//   constant  1
//   cosine    floor + (1 - floor) (1 + cos(pi t)) / 2
//   linear    1 - (1 - floor) t
//   wsd       1 until the last `decay` share of the steps, then linear down to floor
//
// with t the share of the steps after warm-up that is done. The first step has factor 1 / warmup.
#pragma once

#include <cstdint>

#include "core/enum_names.h"

namespace fathom::train {

enum class ScheduleKind : std::uint8_t { constant, cosine, linear, wsd };
constexpr auto enum_names(ScheduleKind) {
  return std::array{"constant", "cosine", "linear", "wsd"};
}

struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  std::int64_t steps = 1000;
  std::int64_t warmup = 100;
  double floor = 0.1;
  double decay = 0.2;

  /// step counts from 0.
  double factor(std::int64_t step) const;
};

}  // namespace fathom::train
