// Reads everything in a study, a run, a token set or a model again and reports what is intact.
//
// A file is intact when it matches its checksum and belongs where it is: records and checkpoints to
// their run, runs to their tokens. Files of older versions have no checksums; they are read and
// counted as such. What the files cannot show, repeating runs can: the same spec must give the same
// bits on the same machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace fathom::study {

struct Verification {
  std::size_t files = 0;      // checked
  std::size_t unguarded = 0;  // of them, without a checksum
  std::uint64_t bytes = 0;
  std::vector<std::string> damage;  // a line each: which file, where, what
};

/// DataError when the folder is none of the four.
Verification verify_folder(const std::filesystem::path& folder);

struct Repetition {
  std::string id;
  bool equal = false;
  std::string difference;  // the first: "step 7: loss 4.1, was 4.2"
};

struct RepeatOptions {
  std::int64_t runs = 1;
  std::function<void(const std::string&)> note;
  std::function<bool()> stop;  // asked by any thread
};

/// Trains that many ended runs of the study again, spread over its runs, in a separate folder, and
/// compares losses and weights bit for bit. StoppedError when stop() asked for it.
std::vector<Repetition> repeat_runs(const std::filesystem::path& study,
                                    const RepeatOptions& options);

}  // namespace fathom::study
