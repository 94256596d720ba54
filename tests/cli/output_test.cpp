// Where results go: -o, pipes, symlinks, and a disk that is full.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "run_command.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

TEST(Output, AFullDiskIsToldByEveryCommand) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"plan", "1B"},
                                                    {"plan", "1B", "--json"},
                                                    {"shape", "list"},
                                                    {"completion", "bash"},
                                                    {"--help"},
                                                    {"--version"}}) {
    std::ostringstream err;
    EXPECT_EQ(run_program(arguments, full, err), 3);
    EXPECT_EQ(err.str(), "fathom: cannot write the result: No space left on device\n");
  }
  std::ostringstream err;
  EXPECT_EQ(run_program({"plan"}, full, err), 2);  // nothing was lost: the first error stands
  close(full);
}

TEST(Output, GoesWholeToADescriptor) {
  const ScratchFolder folder;
  const auto path = folder / "out";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  std::ostringstream err;
  EXPECT_EQ(run_program({"shape", "list", "--json"}, file, err), 0) << err.str();
  close(file);
  EXPECT_EQ(file_bytes(path), run_command({"shape", "list", "--json"}).out);
  EXPECT_GT(std::filesystem::file_size(path), 64u << 10);  // more than the buffer
}

TEST(Output, ADashIsStandardOutput) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"plan", "125M", "--emit", "hf-llama"},
        {"study", "init", "quick"}}) {
    std::vector<std::string> dashed = arguments;
    dashed.insert(dashed.end(), {"-o", "-"});
    const CommandResult result = run_command(dashed);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, run_command(arguments).out);
    EXPECT_FALSE(std::filesystem::exists("-"));
  }
}

TEST(Output, OptionOWritesThroughASymlink) {
  const ScratchFolder folder;
  const auto file = folder.write("config.json", "old");
  std::filesystem::create_symlink("config.json", folder / "link");
  const CommandResult result =
      run_command({"plan", "125M", "--emit", "hf-llama", "-o", (folder / "link").string()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(file_bytes(file).substr(0, 1), "{");
}

}  // namespace
}  // namespace fathom
