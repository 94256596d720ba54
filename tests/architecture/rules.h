// The rules that bind the rooms, and how a tree of files is held against them.
//
//   room: used used ...       a folder of src/: whose headers it may include besides its own
//   part PATTERN: used ...    files inside a room, by path (* matches within one folder name):
//                             which other folders of that room they may include; the first pattern
//                             that matches a file decides
//   users FOLDER: used ...    code outside src/ and the rooms it may include
//
// CMake writes them to rooms.txt from fathom_room, fathom_part and fathom_users.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fathom::architecture {

using Names = std::set<std::string>;

struct Rules {
  std::map<std::string, Names> rooms;
  std::vector<std::pair<std::string, Names>> parts;
  std::map<std::string, Names> users;

  /// std::runtime_error for a line that is none of the three.
  static Rules parse(const std::string& text);
};

/// A cycle among the rooms as a path that ends where it began, {"a", "b", "a"}; empty without one.
std::vector<std::string> find_cycle(const std::map<std::string, Names>& rooms);

/// Whether a path matches a pattern in which * stands for any characters but '/'.
bool matches(const std::string& path, const std::string& pattern);

/// Quoted includes of a source text, as written.
std::vector<std::string> quoted_includes(const std::string& source);

/// What is wrong with one include of a file of src/ (`file` is relative to src/); empty if nothing.
std::string check_room_include(const Rules& rules, const std::string& file,
                               const std::string& include);
/// The same inside a room with parts. Files of such a room that no pattern matches are wrong too.
std::string check_part_include(const Rules& rules, const std::string& file,
                               const std::string& include);
/// The same for a test of a room, a benchmark or a tool (`file` is relative to the repository).
/// tests/ROOM may include ROOM and what ROOM uses.
std::string check_user_include(const Rules& rules, const std::string& file,
                               const std::string& include);

/// Source files below a folder, sorted, relative to `root`.
std::vector<std::string> source_files(const std::filesystem::path& root, const std::string& below);

}  // namespace fathom::architecture
