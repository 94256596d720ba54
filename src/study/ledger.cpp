#include "study/ledger.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "study/study_index.h"

namespace fathom::study {
namespace {

constexpr double kPatienceSeconds = 30;

bool is_writable(const StudyFolder& folder) {
  return access(folder.path().c_str(), W_OK) == 0;
}

std::optional<FileLock> take_turn(const StudyFolder& folder) {
  return FileLock::acquire(folder.ledger_lock(), "ledger", kPatienceSeconds);
}

void write_points(const StudyFolder& folder, const std::vector<RunRow>& rows) {
  write_file_atomically(folder.points(), fits::run_points_csv(points_of(rows)));
}

/// Under the lock.
void write_tables(const StudyFolder& folder, const std::vector<RunRow>& rows) {
  StudyIndex(folder.index()).rebuild(rows);
  write_points(folder, rows);
}

}  // namespace

Ledger::Ledger(const Study& study) : study_(study) {
  refresh();
}

void Ledger::refresh() {
  if (!is_writable(study_.folder)) return;
  const auto turn = take_turn(study_.folder);
  behind_ = !turn;
  if (turn) write_tables(study_.folder, collect_rows(study_));
}

void Ledger::update(const PlannedRun& run, const RunState& state) {
  if (!is_writable(study_.folder)) return;
  if (behind_) return refresh();
  const auto turn = take_turn(study_.folder);
  behind_ = !turn;
  if (!turn) return;
  StudyIndex index(study_.folder.index());
  // Somebody deleted it meanwhile.
  if (index.is_empty()) return write_tables(study_.folder, collect_rows(study_));
  index.update(row_of(run, state));
  write_points(study_.folder, index.query("", ""));
}

std::vector<RunRow> rebuild_tables(const std::filesystem::path& directory) {
  const StudyFolder folder(directory);
  std::vector<RunRow> rows = collect_rows(directory);
  if (!is_writable(folder)) return rows;
  const auto turn = take_turn(folder);
  if (!turn) throw DataError(fmt::format("{}: another process holds its tables", folder.name()));
  rows = collect_rows(directory);  // again, with nobody else writing
  write_tables(folder, rows);
  return rows;
}

}  // namespace fathom::study
