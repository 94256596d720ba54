// How a plan is shown: one screen with the verdict, everything, or JSON.
#pragma once

#include "cli/command_line.h"
#include "planner/planner.h"

namespace fathom {

/// Fits 80 columns and 30 lines.
void print_plan_verdict(Session& session, const planner::Plan& plan);
/// The verdict's screen, then statements, picture, all laws, neighbours.
void print_plan_text(Session& session, const planner::Plan& plan);
void print_plan_json(Session& session, const planner::Plan& plan);

}  // namespace fathom
