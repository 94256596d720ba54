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

TEST(Places, FindsProbesByWhatTheyHold) {
  const ScratchFolder folder;
  const std::string probe = R"({"schema": "fathom.probe.v1", "fathom": "1"})";
  const std::string page = "<style></style><script id=\"fathom-document\">" + probe + "</script>";
  folder.write("big.json", probe);
  folder.write("big.html", page);  // the same, counted once
  folder.write("page.html", page);
  folder.write("notes.json", "{}");
  folder.write("other.html", "<p>nothing</p>");
  folder.write("run/probe.json", probe);
  folder.write("run/other.json", probe);  // only probe.json of folders is looked at
  folder.write("a/study.toml", "");
  const auto places = find_places({folder.path(), folder / "run"});
  ASSERT_EQ(places.size(), 5u);
  EXPECT_EQ(places[0].kind, Place::Kind::study);
  EXPECT_EQ(places[1].name, "big");
  EXPECT_EQ(places[1].path.extension(), ".json");
  EXPECT_EQ(places[2].name, "page");
  EXPECT_EQ(places[3].name, "run");
  EXPECT_EQ(places[3].kind, Place::Kind::probe);
  EXPECT_EQ(places[4].name, "other");  // of the second root
}

TEST(Places, CountAFolderOnce) {
  const ScratchFolder folder;
  folder.write("a/study.toml", "");
  EXPECT_EQ(find_places({folder.path(), folder / "a", folder / "a/../a"}).size(), 1u);
}

}  // namespace
}  // namespace fathom::serve
