#include "attack/summary.h"

#include <fmt/format.h>
#include <signal.h>

namespace fathom::attack {
namespace {

volatile sig_atomic_t stop_wanted = 0;

void want_stop(int) {
  stop_wanted = 1;
}

}  // namespace

void listen_for_stop() {
  struct sigaction action {};
  action.sa_handler = want_stop;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

bool told_to_stop() {
  return stop_wanted != 0;
}

int print(const Summary& summary) {
  fmt::print("{:<10} {:>8} cases {:>6} wrong {:>8.2f} s {:>8.0f} MB\n", summary.attack,
             summary.cases, summary.wrong, summary.seconds, summary.bytes / 1e6);
  return summary.wrong == 0 ? 0 : 1;
}

}  // namespace fathom::attack
