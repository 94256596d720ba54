// A whole file as read-only memory, paged in by the kernel on first touch.
//
// The mapping lives as long as the object. Reading past the end of a file that another program has
// meanwhile shortened kills the process with SIGBUS: code that reads repeatedly calls
// require_whole() first. Writers replace files (core/atomic_file.h) and never rewrite them in
// place.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace fathom {

class MappedFile {
 public:
  /// DataError when the path is missing, not a regular file, or cannot be mapped. May be empty.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  /// DataError when the file is shorter now than it was when it was mapped.
  void require_whole() const;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Releases the memory of a mapped file's bytes; reading them again pages them in again.
void release_pages(std::span<const std::byte> mapped);

}  // namespace fathom
