// From the words of a command line to a command with its options filled in.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace fathom {

enum class Wish { run, help, version };

struct ParsedCommand {
  const Command* command;  // the innermost that was named
  Wish wish;
};

/// Writes the values to the options' targets. ConfigError in one line, with the nearest spelling of
/// an unknown word.
ParsedCommand parse(const Command& root, const std::vector<std::string>& arguments);

}  // namespace fathom
