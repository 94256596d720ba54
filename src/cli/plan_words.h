// A request for the planner from the words after 'fathom plan', for pages that take such words.
#pragma once

#include <string>
#include <vector>

#include "serve/site.h"

namespace fathom {

/// Options that write files or print are unknown here. ConfigError in one line.
serve::PlanWords parse_plan_words(const std::vector<std::string>& words);

}  // namespace fathom
