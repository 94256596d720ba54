#include "serve/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lab/frame/records.h"
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

}  // namespace

std::vector<Place> find_places(const std::vector<fs::path>& roots) {
  std::vector<Place> places;
  for (const fs::path& root : roots) {
    if (kind_of(root)) {
      add_place(root, places);
      continue;
    }
    std::vector<fs::path> inside;
    std::error_code error;
    for (fs::directory_iterator entry(root, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_directory(ignored)) inside.push_back(entry->path());
    }
    std::sort(inside.begin(), inside.end());
    for (const fs::path& folder : inside) add_place(folder, places);
  }
  return places;
}

}  // namespace fathom::serve
