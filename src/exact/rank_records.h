// A file of computed ranks that makes a table resumable: each finished setting is one JSON line,
// synced to disk before the next begins.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

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

}  // namespace fathom::exact
