#include "core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/error.h"

namespace fathom {

namespace fs = std::filesystem;

std::string read_text_file(const fs::path& path, std::size_t limit_bytes) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw DataError(fmt::format("{}: no such file", path.string()));
  if (fs::is_directory(status)) {
    throw DataError(fmt::format("{}: is a folder, a file was expected", path.string()));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw DataError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  std::string content;
  char buffer[1 << 16];
  while (stream.read(buffer, sizeof buffer), stream.gcount() > 0) {
    content.append(buffer, static_cast<std::size_t>(stream.gcount()));
    if (content.size() > limit_bytes) {
      throw DataError(fmt::format("{}: larger than {} bytes", path.string(), limit_bytes));
    }
  }
  if (stream.bad()) throw DataError(fmt::format("{}: reading failed", path.string()));
  return content;
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.{}.tmp", path.string(), getpid());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const auto fail = [&](const char* doing) {
    const int code = errno;
    if (file >= 0) close(file);
    unlink(temporary.c_str());
    throw DataError(fmt::format("{}: {}: {}", path.string(), doing, std::strerror(code)));
  };
  if (file < 0) fail("cannot create");
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t count = write(file, content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot write");
    done += static_cast<std::size_t>(count);
  }
  if (fsync(file) != 0) fail("cannot sync");
  close(file);
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    unlink(temporary.c_str());
    throw DataError(fmt::format("{}: cannot rename: {}", path.string(), std::strerror(code)));
  }
}

}  // namespace fathom
