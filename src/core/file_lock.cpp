#include "core/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

#include "core/counts.h"
#include "core/error.h"

namespace fathom {

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::optional<FileLock> FileLock::acquire(const std::filesystem::path& path,
                                          const std::string& what, double patience_seconds) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    throw DataError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
  }
  using namespace std::chrono;
  const auto end = steady_clock::now() + duration<double>(patience_seconds);
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (steady_clock::now() >= end) {
      close(descriptor);
      return {};
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  FileLock lock(descriptor);
  const std::string text = fmt::format("{} {} {}\n", getpid(), host_name(), what);
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    throw DataError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
  }
  return lock;
}

std::optional<LockHolder> FileLock::holder(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe in its place must not block.
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return {};
  if (flock(descriptor, LOCK_SH | LOCK_NB) == 0) {
    close(descriptor);
    return {};
  }
  char text[512] = "";
  const ssize_t count = pread(descriptor, text, sizeof text - 1, 0);
  close(descriptor);
  LockHolder holder;
  std::istringstream words(std::string(text, as_size(std::max<ssize_t>(count, 0))));
  words >> holder.pid >> holder.host;
  std::getline(words >> std::ws, holder.what);
  return holder;
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace fathom
