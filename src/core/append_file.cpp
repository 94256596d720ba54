#include "core/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "core/uninterrupted.h"

namespace fathom {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw DataError(fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno)));
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = uninterrupted(
      [&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644); });
  if (descriptor_ < 0) fail(path_, "open");
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      throw DataError(fmt::format("{}: not a regular file", path_.string()));
    }
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      throw ConfigError(fmt::format("{} is in use by another process; wait for it or name another",
                                    path_.string()));
    }
    const std::string text = read_text_file(path_);
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      lines_.push_back(text.substr(begin, end - begin));
    }
    if (begin < text.size()) whole_bytes_ = begin;
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

AppendFile::~AppendFile() {
  ::close(descriptor_);
}

void AppendFile::append(std::string_view line) {
  if (whole_bytes_) {
    const auto size = static_cast<off_t>(*whole_bytes_);
    if (uninterrupted([&] { return ::ftruncate(descriptor_, size); }) != 0) fail(path_, "repair");
    whole_bytes_.reset();
  }
  const std::string text = std::string(line) + "\n";
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(descriptor_, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(path_, "write");
    written += static_cast<std::size_t>(count);
  }
  if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0) fail(path_, "sync");
}

}  // namespace fathom
