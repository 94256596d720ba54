// How much longer a study that another process trains will take.
//
//   left = FLOPs left / FLOPs a second
//
// The speed is that observed since the watch began; before that, what finished runs reached, times
// the number of runs that train at once.
#pragma once

#include <optional>

namespace fathom::serve {

/// What is known at one moment.
struct Progress {
  double seconds = 0;     // of a clock that does not jump
  double done_flops = 0;  // of all runs, parts of running ones included
  double left_flops = 0;
  double run_flops_per_second = 0;  // of one run, from the records; 0: none has ended
  std::size_t running = 0;
};

class Pace {
 public:
  /// Seconds left; nothing while the study stands still or its speed is not known yet.
  std::optional<double> left(const Progress& now);

 private:
  std::optional<Progress> first_;  // since when it has been seen training
};

}  // namespace fathom::serve
