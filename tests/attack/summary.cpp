#include "attack/summary.h"

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdio>

namespace fathom::attack {
namespace {

using SummaryClock = std::chrono::steady_clock;

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

void print_now_and_then(const Summary& summary) {
  static SummaryClock::time_point last = SummaryClock::now();
  if (SummaryClock::now() - last < std::chrono::seconds(10)) return;
  last = SummaryClock::now();
  print(summary);
}

int print(const Summary& summary) {
  fmt::print("{:<10} {:>8} cases {:>6} wrong {:>8.2f} s {:>8.0f} MB\n", summary.attack,
             summary.cases, summary.wrong, summary.seconds, summary.bytes / 1e6);
  std::fflush(stdout);
  return summary.wrong == 0 ? 0 : 1;
}

}  // namespace fathom::attack
