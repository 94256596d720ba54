#include "core/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace fathom {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) throw DataError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  struct stat status {};
  const bool regular = fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  void* address = nullptr;
  if (regular && status.st_size > 0) {
    address =
        mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, file_, 0);
  }
  const int code = errno;
  if (regular && address != MAP_FAILED) {
    data_ = static_cast<const std::byte*>(address);
    size_ = static_cast<std::size_t>(status.st_size);
    return;
  }
  close(file_);
  if (!regular) throw DataError(fmt::format("{}: not a regular file", path.string()));
  throw DataError(fmt::format("{}: cannot be mapped: {}", path.string(), std::strerror(code)));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
  if (file_ >= 0) close(file_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::require_whole() const {
  struct stat status {};
  if (fstat(file_, &status) == 0 && static_cast<std::size_t>(status.st_size) >= size_) return;
  throw DataError(
      fmt::format("{}: another program has shortened this file while it was in use; restore it",
                  path_.string()));
}

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data());
  // Whole pages only: the outer ones may belong to a neighbour.
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t end = (begin + mapped.size()) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace fathom
