// A whole file as read-only memory, paged in by the kernel on first touch.
//
// The mapping lives as long as the object. A file that another program shortens while it is mapped
// ends this program with SIGBUS, so writers must replace files (core/atomic_file.h), never
// rewrite them in place.
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

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fathom
