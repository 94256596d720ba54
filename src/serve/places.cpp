#include "serve/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "lab/frame/records.h"
#include "serve/probe_shelf.h"
#include "study/study_folder.h"

namespace fathom::serve {
namespace {

namespace fs = std::filesystem;

std::optional<Place::Kind> kind_of(const fs::path& folder) {
  if (study::StudyFolder(folder).holds_study()) return Place::Kind::study;
  if (lab::holds_results(folder)) return Place::Kind::lab;
  return {};
}

std::string unique_name(const std::vector<Place>& places, Place::Kind kind, std::string wanted) {
  const auto taken = [&](const std::string& name) {
    return std::any_of(places.begin(), places.end(), [&](const Place& place) {
      return place.kind == kind && place.name == name;
    });
  };
  if (wanted.empty() || wanted == "." || wanted == "..") wanted = "study";
  std::string name = wanted;
  for (int i = 2; taken(name); ++i) name = fmt::format("{}-{}", wanted, i);
  return name;
}

void add_place(const fs::path& folder, std::vector<Place>& places) {
  const auto kind = kind_of(folder);
  if (!kind) return;
  std::error_code error;
  const fs::path path = fs::weakly_canonical(folder, error);
  const bool known = std::any_of(places.begin(), places.end(),
                                 [&](const Place& place) { return place.path == path; });
  if (error || known) return;
  places.push_back({*kind, unique_name(places, *kind, path.filename().string()), path});
}

void add_probe(const fs::path& file, const std::string& name, std::vector<Place>& places) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(file, error);
  const bool known = std::any_of(places.begin(), places.end(),
                                 [&](const Place& place) { return place.path == path; });
  if (error || known || !holds_probe(path)) return;
  places.push_back({Place::Kind::probe, unique_name(places, Place::Kind::probe, name), path});
}

/// A probe's JSON, or else its page, under this name without an ending.
void add_probe_named(const fs::path& stem, const std::string& name, std::vector<Place>& places) {
  const std::size_t before = places.size();
  for (const char* ending : {".json", ".html"}) {
    std::error_code ignored;
    const fs::path file = stem.string() + ending;
    if (fs::is_regular_file(file, ignored)) add_probe(file, name, places);
    if (places.size() > before) return;
  }
}

void add_probes(const fs::path& root, const std::vector<fs::path>& files,
                const std::vector<fs::path>& folders, std::vector<Place>& places) {
  std::set<std::string> stems;
  for (const fs::path& file : files) {
    if (file.extension() == ".json" || file.extension() == ".html") stems.insert(file.stem());
  }
  for (const std::string& stem : stems) add_probe_named(root / stem, stem, places);
  for (const fs::path& folder : folders) {
    add_probe_named(folder / "probe", folder.filename().string(), places);
  }
}

}  // namespace

std::vector<Place> find_places(const std::vector<fs::path>& roots) {
  std::vector<Place> places;
  for (const fs::path& root : roots) {
    const bool whole = kind_of(root).has_value();
    if (whole) add_place(root, places);
    std::vector<fs::path> folders, files;
    std::error_code error;
    for (fs::directory_iterator entry(root, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      (entry->is_directory(ignored) ? folders : files).push_back(entry->path());
    }
    std::sort(folders.begin(), folders.end());
    for (const fs::path& folder : folders) {
      if (!whole) add_place(folder, places);
    }
    add_probes(root, files, folders, places);
  }
  return places;
}

}  // namespace fathom::serve
