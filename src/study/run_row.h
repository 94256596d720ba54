// A run of a study as a row of a table: its record, or its plan, with its state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "study/planned_run.h"
#include "study/run_state.h"
#include "train/run_record.h"

namespace fathom::study {

/// Of a run that is not done: tokens, steps and FLOPs to train, and no losses.
struct RunRow : train::RunRecord {
  bool in_spec = true;  // the study's current spec names it
  std::string damage;   // why its record cannot be used; no column

  /// The columns of every table of runs: those of the record, then the study's.
  template <class Self, class Visitor>
  static void visit_columns(Self& row, Visitor& visit) {
    RunRecord::visit_columns(row, visit);
    visit(train::Column("in_spec"), row.in_spec);
  }
};

/// From the record alone.
RunRow row_of(const train::RunRecord& record);
/// From the record where there is one, else from the plan.
RunRow row_of(const PlannedRun& run, const RunState& state);

std::vector<std::string> column_names();
/// The row as texts, in the order of the columns; numbers that are not finite are empty.
std::vector<std::string> row_texts(const RunRow& row);
/// The row as one JSON object.
nlohmann::ordered_json row_json(const RunRow& row);

/// One column of a row; DataError, with the nearest name, when no column has that name.
std::string column_text(const RunRow& row, const std::string& column);
double column_number(const RunRow& row, const std::string& column);

}  // namespace fathom::study
