#include "attack/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "attack/child.h"

namespace fathom::attack {
namespace {

namespace fs = std::filesystem;

void write_bytes(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

/// What a command printed without what a clock says: the duration that ends a line, and the spaces
/// that line it up. A table of ranks whose records were cut is computed again, in another time.
std::string without_durations(const std::string& text) {
  constexpr std::array kUnits{"us", "ms", "s", "min", "h"};
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> row;
    for (std::string word; words >> word;) row.push_back(word);
    const bool timed =
        row.size() > 2 && std::find(kUnits.begin(), kUnits.end(), row.back()) != kUnits.end();
    if (timed) row.resize(row.size() - 2);
    kept += fmt::format("{}\n", fmt::join(row, " "));
  }
  return kept;
}

/// The folder as it was, whatever happens in it.
class Restored {
 public:
  explicit Restored(fs::path folder) : folder_(std::move(folder)) {
    if (folder_.empty()) return;
    existed_ = fs::exists(folder_);
    if (existed_) fs::copy(folder_, copy_ / "copy", fs::copy_options::recursive);
  }
  ~Restored() {
    if (folder_.empty()) return;
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    if (existed_) fs::copy(copy_ / "copy", folder_, fs::copy_options::recursive, ignored);
  }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  fs::path folder_;
  bool existed_ = false;
  ScratchFolder copy_;
};

}  // namespace

Outcome look(const Target& target) {
  Outcome outcome;
  for (const auto& arguments : target.commands) {
    const ChildResult result =
        run_in_child(arguments, kLimitSeconds + target.usual_seconds, target.interrupted);
    outcome.peak_bytes = std::max(outcome.peak_bytes, result.peak_bytes);
    outcome.seconds = std::max(outcome.seconds, result.seconds);
    outcome.total_seconds += result.seconds;
    if (outcome.in_order) {
      outcome.talk = fmt::format("{}, exit {}, signal {}{}: {}", arguments[0], result.code,
                                 result.signal, result.hung ? ", hung" : "", result.err);
    }
    const auto says = [](const std::string& text, const char* word) {
      return text.find(word) != std::string::npos;
    };
    outcome.noticed |= result.code != 0 || says(result.err, "damage") ||
                       says(result.err, "note: ") || says(result.out, "is damaged");
    // The command line's last resort for a value that no reader expected: it can name no file.
    const bool nameless = says(result.err, "a file has unexpected contents");
    outcome.in_order &= result.in_order() && !nameless;
    outcome.stopped |= result.stopped;
    if (target.results.empty()) outcome.result += without_durations(result.out);
  }
  for (const fs::path& file : target.results) outcome.result += file_bytes(file);
  return outcome;
}

Outcome look_at(const Target& target, const std::string& content) {
  const std::string original = file_bytes(target.file);
  Outcome outcome;
  {
    const Restored restored(target.written);
    write_bytes(target.file, content);
    outcome = look(target);
  }
  write_bytes(target.file, original);
  return outcome;
}

}  // namespace fathom::attack
