#include <gtest/gtest.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/shape_view.h"
#include "run_command.h"
#include "shape/catalogue.h"

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
  EXPECT_EQ(run_command({"-V"}).out, run_command({"--version"}).out);
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

TEST(CommandLine, HelpIsACommandToo) {
  EXPECT_EQ(run_command({"help", "plan"}).out, run_command({"plan", "--help"}).out);
  EXPECT_EQ(run_command({"help", "study", "run"}).out, run_command({"study", "run", "--help"}).out);
  EXPECT_EQ(run_command({"help"}).out, run_command({"--help"}).out);
  const CommandResult typo = run_command({"help", "study", "rum"});
  EXPECT_EQ(typo.code, 2);
  EXPECT_NE(typo.err.find("Did you mean 'run'?"), std::string::npos) << typo.err;
}

/// Every command, shown or not, by its words.
void collect_paths(const Command& command, std::vector<std::string> path,
                   std::vector<std::vector<std::string>>& paths) {
  paths.push_back(path);
  for (const Command* sub : command.subcommands()) {
    std::vector<std::string> longer = path;
    longer.push_back(sub->name());
    collect_paths(*sub, longer, paths);
  }
}

TEST(CommandLine, NoHelpShowsWordsOfTheParser) {
  CommandTree tree;
  add_all_commands(tree);
  std::vector<std::vector<std::string>> paths;
  collect_paths(tree.root(), {}, paths);
  EXPECT_GT(paths.size(), 30u);
  for (std::vector<std::string> path : paths) {
    path.push_back("--help");
    const CommandResult help = run_command(path);
    ASSERT_EQ(help.code, 0);
    for (const char* word : {" INT", " UINT", " FLOAT", "REQUIRED", " VALUE ", "PLACES"}) {
      EXPECT_EQ(help.out.find(word), std::string::npos) << word << " in " << help.out;
    }
  }
}

TEST(CommandLine, ZeroIsNotTheDefault) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"plan", "1B", "--max-depth", "0"},
        {"plan", "1B", "--gpus", "0"},
        {"plan", "1B", "--ffn-ratio", "0"},
        {"plan", "1B", "--kv-heads", "0"},
        {"plan", "1B", "--head-size", "0"},
        {"shape", "96x12288", "--heads", "0"},
        {"shape", "96x12288", "--ffn", "0"},
        {"rank", "--layers", "2", "--width", "4", "--threads", "0"},
        {"rank", "--layers", "2", "--width", "4", "--positions", "0"},
        {"data", "prepare", "x", "-o", "y", "--threads", "0"},
        {"generate", "x", "--top-k", "0"},
        {"generate", "x", "--tokens", "0"}}) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    const std::string& option = arguments[arguments.size() - 2];
    EXPECT_EQ(result.err.find("fathom: " + option + ": '0' is not a "), 0u) << result.err;
  }
}

TEST(CommandLine, ShellsCompleteValues) {
  const std::string bash = run_command({"completion", "bash"}).out;
  const auto offers = [&](const std::string& option, const std::string& value) {
    const std::size_t at = bash.find("'fathom " + option + "') words='");
    ASSERT_NE(at, std::string::npos) << option;
    const std::string line = bash.substr(at, bash.find('\n', at) - at);
    EXPECT_NE(line.find(value), std::string::npos) << line;
  };
  offers("plan --law", "gemstones2025");
  offers("plan --hardware", "h100");
  offers("study run --preset", "quick");
  offers("shape", "Llama-3-8B");
  offers("compare", "Llama-3-8B");
  offers("help", "plan");
  offers("plan -o", "words=''");  // a file name
}

TEST(CommandLine, EveryCompletedModelIsFound) {
  for (const std::string& name : published_names()) {
    EXPECT_EQ(name.find_first_of(" \t'\"$`()*?~&|;<>#\\"), std::string::npos) << name;
    EXPECT_TRUE(match_published(name).exact) << name;
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
