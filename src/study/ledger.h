// The tables of a study, kept current by whoever ends a run: the index and the points for fits.
//
// Both are made from the run folders when an executor starts, and each run that ends replaces its
// row. Several executors may do so at once, such as the tasks of a Slurm job beside the command
// that submitted them: they take turns under a lock. Nobody needs the tables to be right: fits and
// reports read the folders.
#pragma once

#include <filesystem>
#include <vector>

#include "study/study_rows.h"

namespace fathom::study {

class Ledger {
 public:
  /// Makes both tables from the folders.
  explicit Ledger(const Study& study);
  /// The run has ended, with a record or a failure.
  void update(const PlannedRun& run, const RunState& state);

 private:
  void refresh();
  const Study& study_;
  bool behind_ = false;  // an update could not be written
};

/// Both tables from the folders; the rows they hold. DataError when there is no study or the tables
/// are held by another process for long; nothing is written where the folder cannot be.
std::vector<RunRow> rebuild_tables(const std::filesystem::path& directory);

}  // namespace fathom::study
