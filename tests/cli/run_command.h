// Runs the whole program in-process and captures what it prints.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
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

/// What the command prints with --json.
inline nlohmann::json run_json(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

}  // namespace fathom
