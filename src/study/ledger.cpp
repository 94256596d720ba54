#include "study/ledger.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_set>

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
  StudyIndex::make_anew(folder.index(), rows);
  write_points(folder, rows);
}

bool has_unknown_folders(const StudyFolder& folder, const std::vector<RunRow>& rows) {
  std::unordered_set<std::string> known;
  for (const RunRow& row : rows) known.insert(row.id);
  std::error_code error;
  const std::filesystem::directory_iterator folders(folder.runs(), error);
  return std::any_of(begin(folders), end(folders), [&](const auto& entry) {
    return !known.contains(entry.path().filename().string());
  });
}

std::string held_by_another(const StudyFolder& folder) {
  return fmt::format("{}: another process holds its tables", folder.name());
}

}  // namespace

Ledger::Ledger(const Study& study) : study_(study) {
  refresh();
}

void Ledger::refresh() {
  if (!is_writable(study_.folder)) return;
  const auto turn = take_turn(study_.folder);
  problem_ = turn ? "" : held_by_another(study_.folder);
  rows_ = collect_rows(study_);
  if (!turn) return;
  try {
    write_tables(study_.folder, rows_);
  } catch (const Error& error) {
    problem_ = error.what();
  }
}

/// The row of the run, and those of runs that other executors have ended since.
std::vector<RunRow> Ledger::look_again(const PlannedRun& run, const RunState& state) {
  if (has_unknown_folders(study_.folder, rows_)) return rows_ = collect_rows(study_);
  std::vector<RunRow> ended;
  std::error_code error;
  for (RunRow& row : rows_) {
    if (row.id.empty() || is_done(row.status)) continue;
    const StudyRunFolder folder = study_.folder.run(row.id);
    const bool own = row.id == run.id;
    if (!own && !std::filesystem::exists(folder.record(), error)) continue;
    const PlannedRun* planned = own ? &run : study_.find(row.id);
    const bool in_spec = row.in_spec;
    row = row_of(planned ? *planned : PlannedRun{}, own ? state : read_run_state(folder));
    row.in_spec = in_spec;
    ended.push_back(row);
  }
  return ended;
}

void Ledger::update(const PlannedRun& run, const RunState& state) {
  if (!is_writable(study_.folder)) return;
  if (!problem_.empty()) return refresh();
  const auto turn = take_turn(study_.folder);
  if (!turn) {
    problem_ = held_by_another(study_.folder);
    return;
  }
  try {
    write_rows(look_again(run, state));
  } catch (const Error& error) {
    problem_ = error.what();
  }
}

/// Under the lock.
void Ledger::write_rows(const std::vector<RunRow>& ended) {
  StudyIndex index(study_.folder.index());
  // It was deleted meanwhile.
  if (index.is_empty()) return write_tables(study_.folder, rows_);
  for (const RunRow& row : ended) index.update(row);
  write_points(study_.folder, rows_);
}

std::vector<RunRow> rebuild_tables(const std::filesystem::path& directory) {
  const StudyFolder folder(directory);
  std::vector<RunRow> rows = collect_rows(directory);
  if (!is_writable(folder)) return rows;
  const auto turn = take_turn(folder);
  if (!turn) throw DataError(held_by_another(folder));
  rows = collect_rows(directory);  // again, with no other writer
  write_tables(folder, rows);
  return rows;
}

}  // namespace fathom::study
