#include "data/named_corpora.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace fathom::data {

namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kNames{"sotu"};

std::vector<fs::path> corpus_folders() {
  std::vector<fs::path> folders;
  const char* chosen = std::getenv("FATHOM_CORPORA");
  if (chosen != nullptr && *chosen != '\0') folders.emplace_back(chosen);
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  while (!folder.empty()) {
    folders.push_back(folder / "corpora");
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  return folders;
}

}  // namespace

const std::vector<std::string>& named_corpora() {
  return kNames;
}

fs::path resolve_corpus(const std::string& name) {
  std::error_code error;
  if (name == "-" || fs::exists(name, error) || std::ranges::find(kNames, name) == kNames.end()) {
    return name;
  }
  for (const fs::path& folder : corpus_folders()) {
    if (fs::is_directory(folder / name, error)) return folder / name;
  }
  throw DataError(
      fmt::format("the corpus '{}' is not installed; run tools/install_corpora.sh in "
                  "the source tree, or point FATHOM_CORPORA at the folder that holds it",
                  name));
}

}  // namespace fathom::data
