// Laws by the names that `--law` accepts.
#pragma once

#include <string>

#include "laws/law.h"

namespace fathom::planner {

/// A published law by name, "aspect:R" for d = R L, or "study:PATH" for a fitted law (a law file or
/// a folder with law.json). ConfigError with a suggestion otherwise.
laws::LawPointer find_law(const std::string& name);

}  // namespace fathom::planner
