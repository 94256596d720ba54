// A program of a plan in readable form: one row for each op, with what it touches and costs.
#pragma once

#include <string>
#include <vector>

#include "engine/plan/step_plan.h"

namespace fathom::engine {

struct PlanRow {
  std::string op;
  Lane lane = Lane::main;
  std::vector<std::string> reads, writes;  // "name [rows x cols] type"
  double flops = 0, bytes = 0;             // op_cost.h
};

std::vector<PlanRow> rows_of(const StepPlan& plan, Program which);

}  // namespace fathom::engine
