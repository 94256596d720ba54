#include "study/speed.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <queue>
#include <thread>

#include "core/counts.h"
#include "model/transformer.h"
#include "train/step_benchmark.h"

namespace fathom::study {
namespace {

double step_flops(const PlannedRun& run) {
  return run.flops / as_double(run.spec.schedule.steps);
}

/// Best-case rate, used only to keep the measurement short.
constexpr double kAssumedFlopsPerSecond = 30e9;
constexpr double kAssumedCudaFlopsPerSecond = 50e12;
constexpr double kStepsOfATiming = 6;  // warm-up, three timed, profile

train::StepTiming time_run(const PlannedRun& run, int jobs, double seconds) {
  model::BuildOptions build;
  build.batch = run.spec.batch;
  build.precision = run.spec.precision;
  train::StepTiming timing;
  std::vector<std::jthread> others;
  for (int job = 1; job < jobs; ++job) {
    others.emplace_back(
        [&] { train::time_steps(run.spec.model, build, run.spec.place(), seconds); });
  }
  timing = train::time_steps(run.spec.model, build, run.spec.place(), seconds);
  return timing;
}

}  // namespace

double SpeedModel::seconds(const PlannedRun& run) const {
  if (points.empty()) return NAN;
  const double x = std::log(step_flops(run));
  double rate = points.front().flops_per_second;
  if (x >= std::log(points.back().step_flops)) {
    rate = points.back().flops_per_second;
  } else {
    for (std::size_t i = 1; i < points.size(); ++i) {
      const double left = std::log(points[i - 1].step_flops),
                   right = std::log(points[i].step_flops);
      if (x < left || x > right) continue;
      const double share = (x - left) / std::max(right - left, 1e-12);
      rate = points[i - 1].flops_per_second * (1 - share) + points[i].flops_per_second * share;
    }
  }
  const train::RunSpec& spec = run.spec;
  const std::int64_t evaluations =
      1 + (spec.eval_every > 0 ? (spec.schedule.steps - 1) / spec.eval_every : 0);
  const double evaluation_flops =
      as_double(evaluations * spec.eval_tokens) * run.flops / as_double(run.tokens) / 3;
  return (run.flops + evaluation_flops) * run.fresh_share() / rate;
}

SpeedModel measure_speed(const std::vector<PlannedRun>& runs, int jobs, double limit_seconds) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<const PlannedRun*> sorted;
  for (const PlannedRun& run : runs) {
    const double rate = run.spec.device == engine::DeviceKind::cuda ? kAssumedCudaFlopsPerSecond
                                                                    : kAssumedFlopsPerSecond;
    const double timed = kStepsOfATiming * as_double(run.spec.accumulation) * step_flops(run);
    if (timed / rate < limit_seconds / 2) {
      sorted.push_back(&run);
    }
  }
  std::sort(sorted.begin(), sorted.end(), [](const PlannedRun* a, const PlannedRun* b) {
    return step_flops(*a) < step_flops(*b);
  });
  SpeedModel model;
  if (sorted.empty()) return model;
  std::vector<const PlannedRun*> chosen{sorted.front(), sorted[sorted.size() / 2], sorted.back()};
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  for (const PlannedRun* run : chosen) {
    if (elapsed() > limit_seconds) break;  // a slow machine: what was timed must suffice
    const train::StepTiming timing = time_run(*run, jobs, limit_seconds / 10);
    // A step of the run is `accumulation` of the benchmark's; the FLOPs are the run's own count.
    const double flops = step_flops(*run) / as_double(run->spec.accumulation);
    model.points.push_back({step_flops(*run), flops / timing.median_seconds});
  }
  model.measured_seconds = elapsed();
  return model;
}

double study_seconds(const std::vector<PlannedRun>& runs, const SpeedModel& speed, int jobs) {
  if (speed.points.empty()) return runs.empty() ? 0 : NAN;  // nothing was timed
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int job = 0; job < std::max(1, jobs); ++job) free_at.push(0);
  double last = 0;
  for (const PlannedRun& run : runs) {
    const double end = free_at.top() + speed.seconds(run);
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
  }
  return last;
}

}  // namespace fathom::study
