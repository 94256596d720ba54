// Runs the whole program in-process and captures what it prints.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace fathom {

struct CommandResult {
  int code;
  std::string out;
  std::string err;
};

inline CommandResult run_command(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  Session session{out, err, Terminal{}};
  const int code = run_command_line(arguments, session);
  return {code, out.str(), err.str()};
}

}  // namespace fathom
