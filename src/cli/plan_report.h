// How a plan is shown: as text with a picture, or as JSON.
#pragma once

#include "cli/command_line.h"
#include "planner/planner.h"

namespace fathom {

void print_plan_text(Session& session, const planner::Plan& plan);
void print_plan_json(Session& session, const planner::Plan& plan);

}  // namespace fathom
