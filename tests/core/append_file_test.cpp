#include "core/append_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/error.h"
#include "core/files.h"
#include "core/memory.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

class AppendFileTest : public testing::Test {
 protected:
  ScratchFolder folder_;
  fs::path path_ = folder_ / "lines";
};

TEST_F(AppendFileTest, KeepsWholeLinesAcrossOpenings) {
  {
    AppendFile file(path_);
    EXPECT_TRUE(file.lines().empty());
    file.append("one");
    file.append("two");
  }
  AppendFile again(path_);
  EXPECT_EQ(again.lines(), (std::vector<std::string>{"one", "two"}));
}

TEST_F(AppendFileTest, ALineCutShortIsReplacedByTheNext) {
  std::ofstream(path_) << "one\ntw";
  {
    AppendFile file(path_);
    EXPECT_EQ(file.lines(), std::vector<std::string>{"one"});
    EXPECT_EQ(read_text_file(path_), "one\ntw");  // untouched until there is something to write
    file.append("three");
  }
  EXPECT_EQ(read_text_file(path_), "one\nthree\n");
}

TEST_F(AppendFileTest, RefusesASecondHolderAndBadPaths) {
  const AppendFile first(path_);
  EXPECT_THROW(AppendFile{path_}, ConfigError);
  EXPECT_THROW(AppendFile{"/nonexistent/folder/file"}, DataError);
  EXPECT_THROW(AppendFile{folder_.path()}, DataError);
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of<DataError>([&] { AppendFile file(pipe); }),
            pipe.string() + ": not a regular file");
}

TEST(Memory, UsableMemoryIsPlausible) {
  EXPECT_GT(usable_memory_bytes(), 1e8);
  EXPECT_LT(usable_memory_bytes(), 1e15);
}

}  // namespace
}  // namespace fathom
