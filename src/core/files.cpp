#include "core/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/atomic_file.h"
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
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace fathom
