// The line that says how a command is called: "fathom plan [SIZE] [OPTIONS]".
#pragma once

#include <string>

#include "cli/command.h"

namespace fathom {

std::string usage_line(const Command& command);

}  // namespace fathom
