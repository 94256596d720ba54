// Two probes for the terminal: what they say together, and their layers side by side.
#pragma once

#include <string>

#include "cli/json_output.h"
#include "terminal/terminal.h"

namespace fathom {

/// `document`: of probe/comparison.h.
std::string render_comparison(const Json& document, const Terminal& terminal);

}  // namespace fathom
