// SIGINT, SIGTERM or SIGUSR1 asks for a checkpoint and an end. A second SIGINT has its default
// action again, for people who do not want to wait; a second SIGTERM does not, because parents and
// schedulers send several.
#pragma once

#include <signal.h>

#include <array>

namespace fathom {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether one has come since this object was made.
  static bool came() { return last() != 0; }
  /// The latest one, or 0.
  static int last();

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGUSR1};
  std::array<struct sigaction, 3> old_{};
};

}  // namespace fathom
