#include "serve/pace.h"

#include "core/counts.h"

namespace fathom::serve {
namespace {

/// Shorter than this a run's next step may not have been seen yet.
constexpr double kEnoughSeconds = 10;

}  // namespace

std::optional<double> Pace::left(const Progress& now) {
  if (now.running == 0) {
    first_.reset();
    return {};
  }
  if (!first_) first_ = now;
  const double seconds = now.seconds - first_->seconds;
  const double flops = now.done_flops - first_->done_flops;
  if (seconds >= kEnoughSeconds && flops > 0) return now.left_flops * seconds / flops;
  const double speed = now.run_flops_per_second * as_double(now.running);
  if (speed > 0) return now.left_flops / speed;
  return {};
}

}  // namespace fathom::serve
