// The directory of a lab run:
//
//   parts.jsonl       one line per finished part: its key, its result, its seconds, and when it
//                     ended (Unix time; not in records of earlier versions)
//   results/ID.json   the verdict on a claim, written when its last part is done; for a custom
//                     set-up results/ID-HASH.json
//
// A part is on disk before the next begins, so the same command resumes after any stop. One process
// at a time holds the file of parts. Lines and verdicts carry checksums (core/checksum.h) and are
// refused, naming their place, when these do not match.
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
  /// What was computed for this key, or null. Any thread may call find() and add().
  const Finished* find(const std::string& key) const;
  /// Records a part that has just ended.
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

/// The documents of a lab directory in the order of the table of claims, custom set-ups after the
/// claim's own; DataError when the directory holds none.
std::vector<Json> read_results(const std::filesystem::path& directory);

/// Whether a directory has results of a lab run.
bool holds_results(const std::filesystem::path& directory);

}  // namespace fathom::lab
