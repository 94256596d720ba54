// Many separation ranks at once, and a record file that makes the work resumable.
//
// Settings run side by side, each on one core (independent eliminations on separate cores are
// faster than threads within one), the largest first, as many as memory allows. Each finished
// setting is one JSON line, synced to disk before the next begins.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exact/separation_rank.h"

namespace fathom {
class AppendFile;
}

namespace fathom::exact {

class RankRecords {
 public:
  /// DataError for a file that holds anything else.
  explicit RankRecords(const std::filesystem::path& path);
  ~RankRecords();

  /// The result computed earlier for the same setting, options and method version, or null.
  const RankResult* find(const RankSetting& setting, const RankOptions& options) const;
  void add(const RankSetting& setting, const RankOptions& options, const RankResult& result);
  std::size_t size() const { return results_.size(); }

 private:
  std::unique_ptr<AppendFile> file_;
  std::map<std::string, RankResult> results_;
};

struct TableProgress {
  /// A setting is finished; `done` of `total`.
  std::function<void(std::size_t index, const RankResult& result, std::size_t done,
                     std::size_t total)>
      finished;
};

/// Results in the order of the settings. Everything is validated, and refused if it cannot fit in
/// memory, before the first one starts. `records` may be null; calls are made under a lock.
std::vector<RankResult> compute_ranks(const std::vector<RankSetting>& settings,
                                      const RankOptions& options, RankRecords* records = nullptr,
                                      const TableProgress& progress = {});

}  // namespace fathom::exact
