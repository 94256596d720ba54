#include "core/folders.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <charconv>

#include "core/error.h"

namespace fathom {

namespace fs = std::filesystem;

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && fs::is_directory(path, error)) return;
  throw DataError(fmt::format("{}: cannot make this folder: {}", path.string(),
                              error ? error.message() : "there is a file of that name"));
}

fs::path put_aside(const fs::path& path) {
  fs::path aside = path.string() + ".broken";
  std::error_code error;
  for (int n = 2; fs::exists(fs::symlink_status(aside, error)); ++n) {
    aside = fmt::format("{}.broken.{}", path.string(), n);
  }
  fs::rename(path, aside, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be put aside: {}", path.string(), error.message()));
  }
  return aside;
}

namespace {

/// The process that writes NAME.PID.tmp or NAME.PID-MORE.tmp; 0 for any other name.
pid_t writer_of(const fs::path& file) {
  if (file.extension() != ".tmp") return 0;
  const std::string middle = file.stem().extension().string();  // ".PID"
  pid_t pid = 0;
  const char* end = middle.data() + middle.size();
  const auto [rest, error] = std::from_chars(middle.data() + !middle.empty(), end, pid);
  return error == std::errc{} && (rest == end || *rest == '-') ? pid : 0;
}

}  // namespace

void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const pid_t writer = writer_of(entry.path());
    const bool gone = writer > 0 && kill(writer, 0) != 0 && errno == ESRCH;
    if (gone && !entry.is_directory(error)) fs::remove(entry.path(), error);
  }
}

}  // namespace fathom
