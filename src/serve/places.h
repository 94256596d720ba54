// What the folders given to 'fathom serve' hold: studies, lab directories and probes, each with a
// name used in its address.
//
// Requests name a place and are answered from this list. No part of a request ever becomes a path,
// so none can reach another file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fathom::serve {

struct Place {
  enum class Kind { study, lab, probe };
  Kind kind = Kind::study;
  std::string name;            // unique among the places of its kind
  std::filesystem::path path;  // a folder; of a probe its file
};

/// Each root may be a study, a lab directory or a folder of such; in the order of the roots, then
/// of the names. Probes are the files of a root that 'fathom probe' wrote, as JSON or as a page,
/// and probe.json or probe.html of the folders in it. Roots that have vanished are skipped.
std::vector<Place> find_places(const std::vector<std::filesystem::path>& roots);

}  // namespace fathom::serve
