// What an attack reports, however it ends: SIGTERM and SIGINT end it after the case at hand, so
// that an attack by the clock still tells what it did.
#pragma once

#include <cstddef>
#include <string>

namespace fathom::attack {

struct Summary {
  std::string attack;
  std::size_t cases = 0, wrong = 0;
  double seconds =
      0;             // of the slowest case: processor time of mutants and flips, else by the clock
  double bytes = 0;  // of the largest process
};

/// From here on the signals only set what `told_to_stop` returns.
void listen_for_stop();
bool told_to_stop();

/// The same line every ten seconds, so that the count of a process that is killed is known, too.
void print_now_and_then(const Summary& summary);

/// The last line of the output, which tests/attack/all.sh adds up; returns the exit code.
int print(const Summary& summary);

}  // namespace fathom::attack
