// Holds every quoted #include of the tree against the rules that the CMakeLists.txt files state.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "architecture/rules.h"

namespace fathom::architecture {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = FATHOM_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Rules real_rules() {
  return Rules::parse(read(FATHOM_BINARY_DIR "/rooms.txt"));
}

using Check = std::string (*)(const Rules&, const std::string&, const std::string&);

/// Runs a check over every include of the files; returns how many includes there were.
std::size_t hold(const Rules& rules, const fs::path& root, const std::vector<std::string>& files,
                 Check check) {
  std::size_t includes = 0;
  for (const std::string& file : files) {
    for (const std::string& include : quoted_includes(read(root / file))) {
      ++includes;
      EXPECT_EQ(check(rules, file, include), "");
    }
  }
  return includes;
}

TEST(Architecture, EveryRoomIncludesOnlyWhatItMayUse) {
  std::vector<std::string> files = source_files(kRoot / "src", "");
  std::erase(files, "main.cpp");
  EXPECT_GT(hold(real_rules(), kRoot / "src", files, check_room_include), 500u);
}

TEST(Architecture, PartsOfARoomIncludeOnlyWhatTheyMayUse) {
  const Rules rules = real_rules();
  ASSERT_FALSE(rules.parts.empty());
  EXPECT_GT(hold(rules, kRoot / "src", source_files(kRoot / "src", "engine"), check_part_include),
            100u);
}

TEST(Architecture, TestsBenchmarksAndToolsIncludeOnlyWhatTheyMayUse) {
  const Rules rules = real_rules();
  for (const char* folder : {"tests", "bench", "tools"}) {
    EXPECT_GT(hold(rules, kRoot, source_files(kRoot, folder), check_user_include), 0u) << folder;
  }
}

TEST(Architecture, RoomsHaveNoCycles) {
  EXPECT_EQ(find_cycle(real_rules().rooms), std::vector<std::string>{});
}

TEST(Architecture, EveryFolderOfSrcIsARoom) {
  const Rules rules = real_rules();
  for (const auto& entry : fs::directory_iterator(kRoot / "src")) {
    if (entry.is_directory()) {
      EXPECT_TRUE(rules.rooms.contains(entry.path().filename().string())) << entry.path();
    }
  }
}

}  // namespace
}  // namespace fathom::architecture
