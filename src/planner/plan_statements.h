// What a plan says in words, each sentence marked with how it is known.
#pragma once

#include "planner/planner.h"

namespace fathom::planner {

/// Fills plan.statements and plan.warnings from the numbers already in the plan.
void add_statements(Plan& plan);

}  // namespace fathom::planner
