#include "core/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/uninterrupted.h"

namespace fathom {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

/// The rename itself is safe only once the folder is on disk. Some file systems refuse to sync a
/// folder; nothing can be done about that.
void sync_folder(const std::filesystem::path& path) {
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;
  fsync(handle);
  close(handle);
}

/// The name is predictable, so nothing found there is opened or followed: a leftover or a planted
/// link is removed and the file created again.
int create_new(const std::filesystem::path& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const auto create = [&] { return open(path.c_str(), kFlags, 0666); };
  int file = uninterrupted(create);
  for (int tries = 0; file < 0 && errno == EEXIST && tries < 3; ++tries) {
    unlink(path.c_str());
    file = uninterrupted(create);
  }
  return file;
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(behind_symlinks(path)), temporary_(fmt::format("{}.{}.tmp", path_.string(), getpid())) {
  file_ = create_new(temporary_);
  if (file_ < 0) fail("cannot create");
  struct stat replaced {};
  if (stat(path_.c_str(), &replaced) == 0) fchmod(file_, replaced.st_mode & 07777);
  buffer_.reserve(kBufferBytes);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(std::exchange(other.file_, -1)),
      written_(other.written_),
      buffer_(std::move(other.buffer_)) {}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const {
  throw DataError(fmt::format("{}: {}: {}", path_.string(), doing, std::strerror(errno)));
}

void AtomicFile::write_fully(const char* data, std::size_t bytes, std::uint64_t offset) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t count =
        pwrite(file_, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot write");
    done += static_cast<std::size_t>(count);
  }
}

void AtomicFile::flush() {
  write_fully(buffer_.data(), buffer_.size(), written_);
  written_ += buffer_.size();
  buffer_.clear();
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  if (buffer_.size() + bytes > kBufferBytes) flush();
  if (bytes >= kBufferBytes) {
    write_fully(from, bytes, written_);
    written_ += bytes;
  } else {
    buffer_.insert(buffer_.end(), from, from + bytes);
  }
}

void AtomicFile::rewrite(std::uint64_t offset, const void* data, std::size_t bytes) {
  flush();
  if (offset > written_ || bytes > written_ - offset) {
    throw InternalError(fmt::format("{}: rewrite past the end", path_.string()));
  }
  write_fully(static_cast<const char*>(data), bytes, offset);
}

void AtomicFile::commit() {
  flush();
  if (uninterrupted([&] { return fsync(file_); }) != 0) fail("cannot sync");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename");
  close(std::exchange(file_, -1));
  sync_folder(path_);
}

}  // namespace fathom
