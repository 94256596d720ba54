// Runs another program to its end and keeps what it prints.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace fathom::study {

struct ProgramResult {
  int code = 0;  // 127: there is no such program; 128 + n: killed by signal n
  std::string out, err;
  bool cut_short = false;  // it was killed because its time was up or its caller had to stop
};

/// How long a caller waits for a program.
struct Patience {
  double seconds = INFINITY;
  std::function<bool()> stop;  // asked a few times a second; true: wait no longer
};

/// The program is looked for on the PATH; no shell is involved.
ProgramResult run_program(const std::vector<std::string>& command, const Patience& patience = {});

}  // namespace fathom::study
