// The files of a run, each named here and nowhere else:
//
//   spec.toml                      what is trained, every key resolved
//   metrics.jsonl                  a line for every step and evaluation, append only
//   checkpoint/state.safetensors   the last checkpoint
//   checkpoint/stem.safetensors    one kept for a longer run, where the study wants it
//   record.json                    the result, written last: its presence means the run has ended
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
  std::filesystem::path stem() const { return path_ / "checkpoint" / "stem.safetensors"; }
  std::filesystem::path record() const { return path_ / "record.json"; }

 private:
  std::filesystem::path path_;
};

}  // namespace fathom::train
