// The pages of `fathom serve` as readers: the same questions that a browser asks, without a socket.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace fathom::attack {

/// The word in place of a command's name.
inline constexpr const char* kAsk = "ask";

/// {kAsk, FOLDER, ADDRESS...}: serves the folder and asks for the addresses in turn. Prints the
/// replies, and what was refused as talk. Returns an exit code as a command would: 0, 2 (refused),
/// 3 (the page cannot be made), or 70 where one odd file takes the overview of all others away or
/// an error names no file.
int ask(const std::vector<std::string>& arguments, Session& session);

}  // namespace fathom::attack
