// A file written piece by piece that appears whole or not at all.
//
// Bytes go to a temporary name next to the target; commit() syncs and renames, so readers see the
// old file or the new one. Destruction without commit removes the temporary file; a full disk
// throws and leaves the old file intact. A symlink stays: the file it names is replaced. The new
// file inherits the mode of the one it replaces. Memory: one buffer of 1 MiB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Overwrites bytes already written, e.g. a header whose counts are known at the end.
  void rewrite(std::uint64_t offset, const void* data, std::size_t bytes);
  std::uint64_t size() const { return written_ + buffer_.size(); }
  void commit();

 private:
  [[noreturn]] void fail(const char* doing) const;
  void write_fully(const char* data, std::size_t bytes, std::uint64_t offset);
  void flush();

  std::filesystem::path path_;  // no symlink
  std::string temporary_;
  int file_ = -1;
  std::uint64_t written_ = 0;
  std::vector<char> buffer_;
};

}  // namespace fathom
