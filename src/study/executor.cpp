#include "study/executor.h"

#include <algorithm>
#include <chrono>

namespace fathom::study {
namespace {

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

double share(const PlannedRun& run, std::int64_t step) {
  return static_cast<double>(step) / static_cast<double>(run.spec.schedule.steps);
}

}  // namespace

StudyPace::StudyPace(const std::vector<const PlannedRun*>& runs) : started_ns_(now_ns()) {
  for (const PlannedRun* run : runs) left_flops_ += run->flops;
}

double StudyPace::elapsed() const {
  return static_cast<double>(now_ns() - started_ns_) * 1e-9;
}

void StudyPace::begin(const PlannedRun& run, std::int64_t first_step) {
  first_steps_.emplace_back(&run, first_step);
}

void StudyPace::finish(const PlannedRun& run) {
  const auto entry = std::find_if(first_steps_.begin(), first_steps_.end(),
                                  [&](const auto& e) { return e.first == &run; });
  const std::int64_t first = entry == first_steps_.end() ? 0 : entry->second;
  if (entry != first_steps_.end()) first_steps_.erase(entry);
  done_flops_ += run.flops * (1 - share(run, first));
  left_flops_ -= run.flops;
}

void StudyPace::fill(Snapshot& snapshot) const {
  snapshot.elapsed_seconds = elapsed();
  double done = done_flops_, left = left_flops_;
  for (const RunningModel& model : snapshot.running) {
    const auto entry = std::find_if(first_steps_.begin(), first_steps_.end(),
                                    [&](const auto& e) { return e.first == model.run; });
    const std::int64_t first = entry == first_steps_.end() ? 0 : entry->second;
    done += model.run->flops * std::max(0.0, share(*model.run, model.tail.step - first));
    left -= model.run->flops * share(*model.run, model.tail.step);
  }
  constexpr double kEnoughSeconds = 2;
  if (done > 0 && snapshot.elapsed_seconds > kEnoughSeconds) {
    snapshot.left_seconds = std::max(0.0, left) * snapshot.elapsed_seconds / done;
  }
}

}  // namespace fathom::study
