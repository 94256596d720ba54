// A probe's result for the terminal: the verdict, the layers, the cuts.
#pragma once

#include <string>

#include "probe/result.h"
#include "terminal/terminal.h"

namespace fathom {

std::string render_probe(const probe::ProbeResult& result, const Terminal& terminal);

}  // namespace fathom
