// What a command found damaged and left out, reported alongside its result.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace fathom {

/// One line each on standard error; of many only the first.
void tell_damage(Session& session, const std::vector<std::string>& damage);

}  // namespace fathom
