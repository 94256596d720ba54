#include "core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/pipe.h"
#include "core/uninterrupted.h"

namespace fathom {

namespace fs = std::filesystem;

namespace {

/// A file that is open for reading and closed at the end.
class OpenFile {
 public:
  explicit OpenFile(const fs::path& path)
      // Opening a pipe without a writer would block forever.
      : file_(
            uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); })) {}
  ~OpenFile() {
    if (file_ >= 0) close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  bool is_open() const { return file_ >= 0; }
  int handle() const { return file_; }
  void wait_for_data() const { fcntl(file_, F_SETFL, 0); }
  ssize_t read_some(char* buffer, std::size_t size) const {
    return uninterrupted([&] { return read(file_, buffer, size); });
  }

 private:
  int file_;
};

}  // namespace

std::string read_text_file(const fs::path& path, std::size_t limit_bytes) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw DataError(fmt::format("{}: no such file", path.string()));
  if (fs::is_directory(status)) {
    throw DataError(fmt::format("{}: is a folder, a file was expected", path.string()));
  }
  const OpenFile file(path);
  if (!file.is_open()) throw DataError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  std::string content;
  char buffer[1 << 16];
  if (!fs::is_fifo(status)) file.wait_for_data();
  ssize_t count = fs::is_fifo(status)
                      ? read_pipe_first(file.handle(), path.string(), buffer, sizeof buffer)
                      : file.read_some(buffer, sizeof buffer);
  for (; count > 0; count = file.read_some(buffer, sizeof buffer)) {
    content.append(buffer, static_cast<std::size_t>(count));
    if (content.size() > limit_bytes) {
      throw DataError(fmt::format("{}: larger than {} bytes", path.string(), limit_bytes));
    }
  }
  if (count < 0) {
    throw DataError(fmt::format("{}: reading failed: {}", path.string(), std::strerror(errno)));
  }
  return content;
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

fs::path behind_symlinks(fs::path path) {
  constexpr int kLongestChain = 40;  // as the kernel has it
  std::error_code error;
  for (int links = 0; fs::is_symlink(path, error); ++links) {
    if (links == kLongestChain) {
      throw DataError(fmt::format("{}: {}", path.string(), std::strerror(ELOOP)));
    }
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  return path;
}

int write_to_handle(int handle, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = write(handle, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

void write_file_or_device(const fs::path& path, std::string_view content) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  // /dev/stdout may be a file that the shell opened to append.
  const bool descriptor = path == "/dev/stdout" || path == "/dev/stderr" ||
                          path.native().starts_with("/dev/fd/") ||
                          path.native().starts_with("/proc/");
  const bool file = !fs::exists(status) || fs::is_regular_file(status);
  if ((file && !descriptor) || fs::is_directory(status)) {
    return write_file_atomically(path, content);
  }
  const int handle = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  int cause = handle < 0 ? errno : write_to_handle(handle, content);
  if (handle >= 0 && close(handle) != 0 && cause == 0) cause = errno;
  if (cause != 0) {
    throw DataError(fmt::format("{}: cannot write: {}", path.string(), std::strerror(cause)));
  }
}

}  // namespace fathom
