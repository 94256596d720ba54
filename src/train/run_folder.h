// The files of a run, each named here and nowhere else:
//
//   spec.toml                        what is trained, every key resolved
//   metrics.jsonl                    a line for every step and evaluation, append only
//   checkpoint/state.safetensors     the last checkpoint
//   checkpoint/previous.safetensors  the one before, until the run has ended
//   checkpoint/best.safetensors      of the best evaluation so far, where the spec asks for it
//   checkpoint/stem.safetensors      one kept for a longer run, where the study wants it
//   claim                            the lock of the process that trains it
//   record.json                      the result, written last: it is there once the run has ended
//
// What cannot be used is never overwritten: it is put aside under its name plus ".broken".
#pragma once

#include <filesystem>
#include <utility>

namespace fathom::train {

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path spec() const { return path_ / "spec.toml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint" / "state.safetensors"; }
  std::filesystem::path previous() const { return path_ / "checkpoint" / "previous.safetensors"; }
  std::filesystem::path best() const { return path_ / "checkpoint" / "best.safetensors"; }
  std::filesystem::path stem() const { return path_ / "checkpoint" / "stem.safetensors"; }
  /// Locked by the process that trains the run.
  std::filesystem::path claim() const { return path_ / "claim"; }
  std::filesystem::path record() const { return path_ / "record.json"; }

 private:
  std::filesystem::path path_;
};

}  // namespace fathom::train
