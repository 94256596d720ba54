#include "serve/places.h"

#include <gtest/gtest.h>

#include "scratch_folder.h"

namespace fathom::serve {
namespace {

namespace fs = std::filesystem;

TEST(Places, FindsStudiesAndLabsInAFolderAndByThemselves) {
  const ScratchFolder folder;
  folder.write("runs/a/study.toml", "");
  folder.write("runs/b/runs/x/record.json", "{}");
  folder.write("runs/lab/results/claim.json", "{}");
  folder.write("runs/notes/readme.md", "");
  folder.write("elsewhere/a/study.toml", "");
  const auto places = find_places({folder / "runs", folder / "elsewhere/a", folder / "gone"});
  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(places[0].name, "a");
  EXPECT_EQ(places[1].name, "b");
  EXPECT_EQ(places[2].name, "lab");
  EXPECT_EQ(places[2].kind, Place::Kind::lab);
  EXPECT_EQ(places[3].name, "a-2");
  EXPECT_EQ(places[3].path, fs::canonical(folder / "elsewhere/a"));
}

TEST(Places, CountAFolderOnce) {
  const ScratchFolder folder;
  folder.write("a/study.toml", "");
  EXPECT_EQ(find_places({folder.path(), folder / "a", folder / "a/../a"}).size(), 1u);
}

}  // namespace
}  // namespace fathom::serve
