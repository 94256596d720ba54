// The tables of a study, kept current by whoever ends a run: the index and the points for fits.
//
// Both are rebuilt from the run folders when an executor starts, and each run that ends replaces
// its row. Several executors may do so at once, such as the tasks of a Slurm job alongside the
// command that submitted them: they take turns under a lock. Nothing is read back from the tables,
// so what another program does to them affects no result; one that cannot be written is reported as
// out of date until it can.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/study_rows.h"

namespace fathom::study {

class Ledger {
 public:
  /// Makes both tables from the folders.
  explicit Ledger(const Study& study);
  /// The run has ended, with a record or a failure.
  void update(const PlannedRun& run, const RunState& state);
  /// Why the tables are out of date; empty while they are not.
  const std::string& problem() const { return problem_; }

 private:
  void refresh();
  void write_rows(const std::vector<RunRow>& ended);
  std::vector<RunRow> look_again(const PlannedRun& run, const RunState& state);

  const Study& study_;
  std::vector<RunRow> rows_;
  std::string problem_;
};

/// Both tables from the folders; the rows they hold. DataError when there is no study or the tables
/// are held by another process for too long; nothing is written where the folder cannot be.
std::vector<RunRow> rebuild_tables(const std::filesystem::path& directory);

}  // namespace fathom::study
