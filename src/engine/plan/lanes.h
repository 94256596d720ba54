// Which tasks of a program may run concurrently. Tasks have an order that is correct if they run
// one after the other; each is assigned to one of two lanes, and a lane keeps its order. Across
// lanes a task waits only for an earlier one of the other lane that it must not overtake:
//
//   a task reads what an earlier one writes, writes what an earlier one reads, or both write,
//
// judged by bytes of memory, not by tensors: an arena gives the same bytes to several tensors.
//
// The gradient of a parameter is not needed before the norm of all gradients: where a device has a
// second lane, ops that make nothing else go there, and fill what the chain of the others leaves
// idle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/enum_array.h"
#include "engine/plan/device_offers.h"
#include "engine/plan/op.h"

namespace fathom::engine {

enum class Lane : std::uint8_t { main, side };
constexpr auto enum_names(Lane) {
  return std::array{"main", "side"};
}

/// The best lane for an op on a device with these offers.
Lane lane_of(const Op& op, const Tensors& tensors, const DeviceOffers& offers);

struct ByteRange {
  std::uintptr_t begin = 0, end = 0;
  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

/// What a task touches.
struct Footprint {
  std::vector<ByteRange> reads, writes;

  bool conflicts(const Footprint& other) const {
    return meet(writes, other.reads) || meet(writes, other.writes) || meet(reads, other.writes);
  }

 private:
  static bool meet(const std::vector<ByteRange>& a, const std::vector<ByteRange>& b) {
    return std::any_of(a.begin(), a.end(), [&](const ByteRange& one) {
      return std::any_of(b.begin(), b.end(),
                         [&](const ByteRange& two) { return one.overlaps(two); });
    });
  }
};

struct LaneTask {
  Lane lane = Lane::main;
  Footprint footprint;
};

inline constexpr std::ptrdiff_t kNoTask = -1;

struct LaneSchedule {
  std::vector<std::ptrdiff_t> waits;   // by task: the task of the other lane it waits for, or none
  std::vector<bool> signals;           // by task: whether something waits for it
  std::ptrdiff_t last_side = kNoTask;  // the caller waits for it at the end
};

inline LaneSchedule schedule_lanes(const std::vector<LaneTask>& tasks) {
  LaneSchedule schedule{std::vector<std::ptrdiff_t>(tasks.size(), kNoTask),
                        std::vector<bool>(tasks.size(), false), kNoTask};
  // The latest task of the other lane that a lane has waited for: all before it are done too.
  EnumArray<Lane, std::ptrdiff_t> seen;
  for (std::ptrdiff_t& task : seen) task = kNoTask;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const LaneTask& task = tasks[i];
    std::ptrdiff_t& known = seen[task.lane];
    for (auto j = static_cast<std::ptrdiff_t>(i) - 1; j > known; --j) {
      const LaneTask& earlier = tasks[static_cast<std::size_t>(j)];
      if (earlier.lane == task.lane || !earlier.footprint.conflicts(task.footprint)) continue;
      schedule.waits[i] = known = j;
      schedule.signals[static_cast<std::size_t>(j)] = true;
      break;
    }
    if (task.lane == Lane::side) schedule.last_side = static_cast<std::ptrdiff_t>(i);
  }
  if (schedule.last_side != kNoTask) {
    schedule.signals[static_cast<std::size_t>(schedule.last_side)] = true;
  }
  return schedule;
}

}  // namespace fathom::engine
