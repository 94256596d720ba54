// One command of fathom in a child of its own, which may crash, hang or eat memory.
#pragma once

#include <string>
#include <vector>

namespace fathom::attack {

struct ChildResult {
  int code = 0;
  int signal = 0;  // that ended it, or 0
  bool hung = false;
  bool stopped = false;  // was told to stop, and did
  double seconds = 0;    // of processor time
  double peak_bytes = 0;
  std::string out, err;

  /// It ended by itself, with one of the documented codes.
  bool in_order() const {
    return signal == 0 && !hung &&
           (code == 0 || code == 2 || code == 3 || code == 4 || code == 130);
  }
};

// Sanitizers take several times the time and the memory.
#ifdef __SANITIZE_ADDRESS__
inline constexpr double kLimitSeconds = 40, kMostBytes = 4e9;
#else
inline constexpr double kLimitSeconds = 10, kMostBytes = 2e9;
#endif

/// Forks and runs the command line in the child: no exec, so that thousands take seconds. The
/// caller must not have started threads. A child that takes more processor time than
/// `limit_seconds`, or much longer by the clock, is killed: it hangs. `interrupted`: work without
/// an end may be what was asked for, so a child is told to stop (SIGTERM) after half the limit, as
/// somebody who waits would, and hangs only if it goes on.
ChildResult run_in_child(const std::vector<std::string>& arguments,
                         double limit_seconds = kLimitSeconds, bool interrupted = false);

}  // namespace fathom::attack
