#include "core/folders.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <charconv>
#include <string>

#include "core/error.h"

namespace fathom {

namespace fs = std::filesystem;

namespace {

/// The process that writes `entry`, called NAME.PID.tmp or NAME.PID-MORE.tmp; 0 for any other.
pid_t writer_of(const std::string& entry, const std::string& name) {
  const std::string prefix = name + ".";
  if (!entry.starts_with(prefix) || !entry.ends_with(".tmp")) return 0;
  pid_t pid = 0;
  const char* end = entry.data() + entry.size();
  const auto [rest, error] = std::from_chars(entry.data() + prefix.size(), end, pid);
  return error == std::errc{} && (*rest == '-' || std::string_view(rest, end) == ".tmp") ? pid : 0;
}

void remove_leftovers_of(const fs::path& file) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), error)) {
    const pid_t writer = writer_of(entry.path().filename().string(), file.filename().string());
    const bool gone = writer > 0 && kill(writer, 0) != 0 && errno == ESRCH;
    if (gone && !entry.is_directory(error)) fs::remove(entry.path(), error);
  }
}

}  // namespace

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

void remove_leftovers(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) remove_leftovers_of(file);
}

}  // namespace fathom
