// A lock file whose lock dies with its process (flock): no stale locks after kill -9.
//
// The file says who holds it ("pid host what"), for messages only; what counts is the lock itself.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace fathom {

struct LockHolder {
  pid_t pid = 0;
  std::string host;
  std::string what;
};

class FileLock {
 public:
  /// The lock, or nothing while another process holds it. Waits up to `patience_seconds`. DataError
  /// when the file cannot be made.
  static std::optional<FileLock> acquire(const std::filesystem::path& path, const std::string& what,
                                         double patience_seconds);
  /// Who holds it now; nothing when it is free.
  static std::optional<LockHolder> holder(const std::filesystem::path& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

std::string host_name();

}  // namespace fathom
