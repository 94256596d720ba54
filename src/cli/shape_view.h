// How `fathom shape` shows a shape and the catalogue: as text or as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "planner/shape_report.h"

namespace fathom {

void print_shape_text(Session& session, const planner::ShapeReport& report);
void print_shape_json(Session& session, const planner::ShapeReport& report);
void print_catalogue(Session& session, const std::vector<const CatalogueEntry*>& entries,
                     bool json);

/// Names of the catalogue for shell completion: those that a shell takes without quotes, a dash in
/// place of spaces. find_shape takes every one.
std::vector<std::string> published_names();

}  // namespace fathom
