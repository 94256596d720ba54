#include "cli/stop_signals.h"

#include <atomic>

namespace fathom {
namespace {

std::atomic<int> last_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

StopSignals::StopSignals() {
  last_signal = 0;
  struct sigaction action {};
  action.sa_handler = [](int signal) { last_signal = signal; };
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    action.sa_flags = kSignals[i] == SIGINT ? static_cast<int>(SA_RESETHAND) : SA_RESTART;
    sigaction(kSignals[i], &action, &old_[i]);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_[i], nullptr);
}

int StopSignals::last() {
  return last_signal;
}

}  // namespace fathom
