// JSON of shapes and counts, shared by the commands that print them.
#pragma once

#include "cli/json_output.h"
#include "planner/shape_report.h"
#include "shape/parameters.h"
#include "shape/shape.h"

namespace fathom {

Json shape_json(const Shape& shape);
Json parameters_json(const ParameterCount& count);
/// Everything `fathom shape` counts of one shape.
Json shape_report_json(const planner::ShapeReport& report);

}  // namespace fathom
