// A file of lines that only grows: each line is on disk before append() returns, and a line
// that a crash cut short is skipped on opening and removed by the first append.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

class AppendFile {
 public:
  /// Opens or creates; ConfigError when another process holds it, DataError when it cannot be used.
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// The complete lines found at opening.
  const std::vector<std::string>& lines() const { return lines_; }
  /// Writes the line and syncs; not thread-safe.
  void append(std::string_view line);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::vector<std::string> lines_;
  std::optional<std::size_t> whole_bytes_;  // where a cut-short line begins, if there is one
};

}  // namespace fathom
