// The options of a command that were given, as one would type them again.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace fathom {

/// "--vocab 32000 --total": the options whose values differ from those of `fresh`, the same command
/// with nothing given; those with a name in `skipped` ("--flops", "SIZE") are left out.
std::string given_options(const Command& command, const Command& fresh,
                          const std::vector<std::string>& skipped);

}  // namespace fathom
