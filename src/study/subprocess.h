// Runs another program to its end and keeps what it prints.
#pragma once

#include <string>
#include <vector>

namespace fathom::study {

struct ProgramResult {
  int code = 0;  // 127: there is no such program; 128 + n: killed by signal n
  std::string out, err;
};

/// The program is looked for on the PATH; no shell is involved.
ProgramResult run_program(const std::vector<std::string>& command);

}  // namespace fathom::study
