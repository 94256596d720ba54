// Holds every #include of src/ against the rooms' own USES lists (rooms.txt, written by CMake).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace fs = std::filesystem;

namespace {

using Rules = std::map<std::string, std::set<std::string>>;

Rules read_rules() {
  Rules rules;
  std::ifstream file(FATHOM_BINARY_DIR "/rooms.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string room;
    words >> room;
    if (room.empty()) continue;
    room.pop_back();  // the colon
    rules[room] = {};
    for (std::string used; words >> used;) rules[room].insert(used);
  }
  return rules;
}

/// Rooms named by the quoted includes of one file.
std::set<std::string> included_rooms(const fs::path& file) {
  static const std::regex include(R"re(^\s*#include\s+"([a-z_]+)/)re");
  std::set<std::string> rooms;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::smatch match;
    if (std::regex_search(line, match, include)) rooms.insert(match[1]);
  }
  return rooms;
}

TEST(Architecture, EveryRoomIncludesOnlyWhatItMayUse) {
  const Rules rules = read_rules();
  ASSERT_GE(rules.size(), 3u);
  std::size_t files = 0;
  for (const auto& [room, uses] : rules) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(FATHOM_SOURCE_DIR) / "src" / room)) {
      if (!entry.is_regular_file()) continue;
      ++files;
      for (const std::string& included : included_rooms(entry.path())) {
        EXPECT_TRUE(included == room || uses.contains(included))
            << entry.path().string() << " includes room '" << included << "', but " << room
            << " may use only what its CMakeLists.txt names";
      }
    }
  }
  EXPECT_GT(files, 10u);
}

TEST(Architecture, RoomsHaveNoCycles) {
  const Rules rules = read_rules();
  // A room may use only rooms declared before it, which src/CMakeLists.txt orders lowest first.
  std::set<std::string> reachable;
  const std::function<void(const std::string&, const std::string&)> visit =
      [&](const std::string& from, const std::string& start) {
        for (const std::string& used : rules.at(from)) {
          EXPECT_NE(used, start) << "cycle through " << start;
          if (used != start) visit(used, start);
        }
      };
  for (const auto& [room, uses] : rules) visit(room, room);
}

TEST(Architecture, EveryFolderOfSrcIsARoom) {
  const Rules rules = read_rules();
  for (const auto& entry : fs::directory_iterator(fs::path(FATHOM_SOURCE_DIR) / "src")) {
    if (entry.is_directory()) {
      EXPECT_TRUE(rules.contains(entry.path().filename().string())) << entry.path();
    }
  }
}

}  // namespace
