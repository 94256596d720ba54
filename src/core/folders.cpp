#include "core/folders.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>

#include "core/error.h"

namespace fathom {

namespace fs = std::filesystem;

namespace {

struct Writing {
  std::string_view name;  // of the final file
  pid_t writer = 0;       // 0: no temporary file
};

/// The parts of NAME.PID.tmp or NAME.PID-MORE.tmp.
Writing parse_temporary(std::string_view entry) {
  constexpr std::string_view kEnd = ".tmp";
  if (!entry.ends_with(kEnd)) return {};
  entry.remove_suffix(kEnd.size());
  const std::size_t dot = entry.rfind('.');
  if (dot == std::string_view::npos) return {};
  pid_t pid = 0;
  const char* end = entry.data() + entry.size();
  const auto [rest, error] = std::from_chars(entry.data() + dot + 1, end, pid);
  if (error != std::errc{} || (rest != end && *rest != '-')) return {};
  return {entry.substr(0, dot), pid};
}

/// Those of the file, or of any where `name` is empty.
void remove_leftovers_of(const fs::path& folder, const std::string& name) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string temporary = entry.path().filename().string();
    const Writing writing = parse_temporary(temporary);
    const bool gone = writing.writer > 0 && kill(writing.writer, 0) != 0 && errno == ESRCH;
    if (!gone || (!name.empty() && writing.name != name)) continue;
    if (!entry.is_directory(error)) fs::remove(entry.path(), error);
  }
}

}  // namespace

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && fs::is_directory(path, error)) return;
  throw DataError(fmt::format("{}: cannot create this folder: {}", path.string(),
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
  for (const fs::path& file : files) {
    remove_leftovers_of(file.parent_path(), file.filename().string());
  }
}

void remove_leftovers_in(const fs::path& folder) {
  remove_leftovers_of(folder, "");
}

fs::path make_temporary_folder(const std::string& name) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  std::string path = (parent / (name + "-XXXXXX")).string();
  if (!error && mkdtemp(path.data()) != nullptr) return path;
  const char* given = std::getenv("TMPDIR");
  throw DataError(
      fmt::format("{}: cannot make a temporary folder there; set TMPDIR to one that can "
                  "be written",
                  given != nullptr ? given : "/tmp"));
}

}  // namespace fathom
