// The table of runs in SQLite, for queries by Fathom and by people.
//
// Table `runs` has the columns of RunRow: strings as TEXT, numbers as REAL except for small
// integers, INTEGER. The file can be deleted at any time: it is rebuilt from the run folders. A
// file from elsewhere may hold triggers and views: they are never run. Writers of one study take
// turns under the ledger's lock (study/ledger.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "study/run_row.h"

namespace fathom::study {

class StudyIndex {
 public:
  /// Opens or makes the file; one that is broken or of another version is rebuilt. In memory
  /// where its folder cannot be written.
  explicit StudyIndex(const std::filesystem::path& file);
  /// Replaces the file with a new one with these rows, whatever it held and whoever has it open.
  static void make_anew(const std::filesystem::path& file, const std::vector<RunRow>& rows);
  /// In memory, for one query.
  explicit StudyIndex(const std::vector<RunRow>& rows);
  ~StudyIndex();
  StudyIndex(const StudyIndex&) = delete;
  StudyIndex& operator=(const StudyIndex&) = delete;

  /// Replaces everything with `rows`, in one transaction.
  void rebuild(const std::vector<RunRow>& rows);
  /// Adds the row, or replaces the one with its id in place.
  void update(const RunRow& row);
  bool is_empty() const;
  /// Rows where the SQL condition holds ("" for all), ordered by a column or expression ("" for
  /// the order of insertion). ConfigError with SQLite's message when they are not SQL.
  std::vector<RunRow> query(const std::string& where, const std::string& order) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fathom::study
