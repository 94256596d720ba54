// DIR/study.db: the table of runs in SQLite (WAL), for queries by Fathom and by people.
//
// It can be deleted at any time: `rebuild` makes it again from the run folders in one transaction.
// Columns of table `runs`: id, layers, width, heads, params, total_params, tokens, seed, loss,
// bits_per_byte, status, reason, seconds, tokens_per_second, flops, in_spec.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "study/study_rows.h"

namespace fathom::study {

class StudyIndex {
 public:
  /// Opens or makes DIR/study.db; a broken one is made anew. In memory where the directory cannot
  /// be written.
  explicit StudyIndex(const std::filesystem::path& directory);
  ~StudyIndex();
  StudyIndex(const StudyIndex&) = delete;
  StudyIndex& operator=(const StudyIndex&) = delete;

  /// Replaces everything by `rows`, in one transaction.
  void rebuild(const std::vector<RunRow>& rows);
  void update(const RunRow& row);
  /// Rows where the SQL condition holds ("" for all), ordered by a column or expression ("" for
  /// the order of insertion). ConfigError with SQLite's message when they are no SQL.
  std::vector<RunRow> query(const std::string& where, const std::string& order) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Index and points.csv from the folders; the rows it found.
std::vector<RunRow> reindex(const std::filesystem::path& directory);

}  // namespace fathom::study
