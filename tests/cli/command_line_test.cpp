#include <gtest/gtest.h>

#include <algorithm>

#include "run_command.h"

namespace fathom {
namespace {

void expect_one_line(const std::string& text) {
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST(CommandLine, TyposGetASuggestionAndExitCode2) {
  const CommandResult command = run_command({"bonds"});
  EXPECT_EQ(command.code, 2);
  EXPECT_EQ(command.err,
            "fathom: unknown command 'bonds'. Did you mean 'bounds'? See 'fathom --help'.\n");
  const CommandResult option = run_command({"bounds", "--layres", "2", "--width", "8"});
  EXPECT_EQ(option.code, 2);
  EXPECT_EQ(option.err,
            "fathom: unknown option '--layres'. Did you mean '--layers'? See 'fathom "
            "bounds --help'.\n");
  const CommandResult value = run_command({"completion", "bsh"});
  EXPECT_EQ(value.code, 2);
  EXPECT_NE(value.err.find("Did you mean 'bash'?"), std::string::npos) << value.err;
}

TEST(CommandLine, HelpShowsExamplesBeforeOptions) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"bounds", "--help"}}) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.code, 0);
    const std::size_t examples = result.out.find("Examples:");
    const std::size_t options = result.out.find("--help");
    ASSERT_NE(examples, std::string::npos);
    EXPECT_LT(examples, options);
  }
}

TEST(CommandLine, VersionAndBareCallWork) {
  EXPECT_EQ(run_command({"--version"}).out.substr(0, 7), "fathom ");
  const CommandResult bare = run_command({});
  EXPECT_EQ(bare.code, 0);
  EXPECT_NE(bare.out.find("Usage: fathom COMMAND"), std::string::npos);
}

TEST(CommandLine, CompletionKnowsEveryCommandAndOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const CommandResult result = run_command({"completion", shell});
    EXPECT_EQ(result.code, 0);
    for (const char* word : {"bounds", "match-depth", "completion", "zsh"}) {
      EXPECT_NE(result.out.find(word), std::string::npos) << shell << " lacks " << word;
    }
  }
}

TEST(Bounds, RefusesWrongShapesInOneLine) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"bounds", "--layers", "6", "--width", "10", "--heads", "16"},
        {"bounds", "--layers", "0", "--width", "8"},
        {"bounds", "--layers", "x", "--width", "8"},
        {"bounds", "--layers", "3", "--width", "8", "--match-depth", "3"},
        {"bounds", "--layers", "3"}}) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    expect_one_line(result.err);
  }
}

}  // namespace
}  // namespace fathom
