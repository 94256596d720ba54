// The directory of a lab run:
//
//   parts.jsonl       one line per finished part: its key, its result, its seconds, and when it
//                     ended (Unix time; not in records of earlier versions)
//   results/ID.json   the verdict on a claim, written when its last part is done; with options of
//                     one's own results/ID-HASH.json
//
// A part is on the disk before the next begins, so the same command goes on after any stop. The
// file of parts is held by one process at a time. Lines and verdicts carry checksums
// (core/checksum.h) and are refused, with their place, when they do not hold.
#pragma once

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lab/frame/experiment.h"

namespace fathom {
class AppendFile;
}

namespace fathom::lab {

class LabRecords {
 public:
  /// Makes the directory where needed. ConfigError while another process writes to it, DataError
  /// for a directory that holds anything else under these names or cannot be written.
  explicit LabRecords(const std::filesystem::path& directory);
  ~LabRecords();

  struct Finished {  // NOLINT(bugprone-exception-escape): moving a Json throws nothing
    Json result;
    double seconds = 0;
    double ended = NAN;  // Unix time; NaN where it was not kept
  };
  /// What was computed for this key, or null. Any thread may call both.
  const Finished* find(const std::string& key) const;
  /// A part that has just ended.
  void add(const std::string& key, const Json& result, double seconds);
  /// Stores the document of a finished claim.
  void finish(const Json& document);

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path parts_file() const;

 private:
  std::filesystem::path directory_;
  std::unique_ptr<AppendFile> file_;
  std::map<std::string, Finished> finished_;
  mutable std::mutex mutex_;
};

/// The documents of a lab directory in the order of the table of claims, those of own options
/// after the claim's own; DataError when the directory holds none.
std::vector<Json> read_results(const std::filesystem::path& directory);

/// Whether a directory has results of a lab run.
bool holds_results(const std::filesystem::path& directory);

}  // namespace fathom::lab
