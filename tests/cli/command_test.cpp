// Commands as data: labels, help lines, and what the parser makes of them.
#include "cli/command.h"

#include <gtest/gtest.h>

#include "cli/command_line.h"
#include "cli/parse.h"
#include "core/error.h"
#include "run_command.h"

namespace fathom {
namespace {

/// A command with an option of each kind.
struct Sample {
  CommandTree tree;
  std::string place, colour = "red";
  std::vector<std::string> settings;
  std::int64_t count = 3, doors = 0;
  double share = 0;
  bool json = false;
  Command* command = nullptr;

  Sample() {
    command = &tree.add(tree.root(), "paint", {"Paint", "", {}}, [](Session&) {});
    command->add_option("PLACE,--place", place, "Where")->required();
    command->add_option("-n,--count", count, "How often (default 3)")->check(Range{1, 2048});
    command->add_option("--share", share, "How much");
    command->add_option("--doors", doors, "How many")->positive();
    command->add_option("--set", settings, "Override one value")->type_name("KEY=VALUE");
    tree.restrict(command->add_option("--colour", colour, "Which"), {"red", "green"});
    command->add_flag("--json", json, "Print JSON");
  }

  ParsedCommand read(std::vector<std::string> words) {
    words.insert(words.begin(), "paint");
    return parse(tree.root(), words);
  }
  std::string error(const std::vector<std::string>& words) {
    try {
      read(words);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
};

TEST(Command, OptionsDescribeThemselves) {
  const Sample sample;
  const auto options = sample.command->options();
  ASSERT_EQ(options.size(), 8u);
  EXPECT_EQ(options[0]->label(), "PLACE");
  EXPECT_EQ(options[1]->label(), "-h, --help");
  EXPECT_EQ(options[2]->label() + " " + options[2]->value_name(), "-n, --count N");
  EXPECT_EQ(options[2]->meaning(), "How often (default 3; 1 to 2,048)");
  EXPECT_EQ(options[3]->value_name(), "X");
  EXPECT_EQ(options[4]->meaning(), "How many");
  EXPECT_EQ(options[5]->value_name(), "KEY=VALUE");
  EXPECT_EQ(options[6]->meaning(), "Which (red | green)");
  EXPECT_EQ(sample.command->path(), "fathom paint");
}

TEST(Command, ParsingFillsTheTargets) {
  Sample sample;
  const ParsedCommand parsed = sample.read(
      {"--set", "a=1", "wall", "-n", "7", "--set", "b=2", "--share", "0.5", "--colour", "green"});
  EXPECT_EQ(parsed.command, sample.command);
  EXPECT_EQ(parsed.wish, Wish::run);
  EXPECT_EQ(sample.place, "wall");
  EXPECT_EQ(sample.count, 7);
  EXPECT_EQ(sample.share, 0.5);
  EXPECT_EQ(sample.settings, (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(sample.colour, "green");
  EXPECT_FALSE(sample.json);
  EXPECT_EQ(sample.read({"--help"}).wish, Wish::help);
}

TEST(Command, WrongValuesAreNamed) {
  Sample sample;
  EXPECT_EQ(sample.error({"wall", "-n", "0"}),
            "--count: '0' is not a whole number from 1 to 2048. See 'fathom paint --help'.");
  EXPECT_EQ(sample.error({"wall", "--count", "2.5"}),
            "--count: '2.5' is not a whole number from 1 to 2048. See 'fathom paint --help'.");
  EXPECT_EQ(sample.error({"wall", "--share", "much"}),
            "--share: 'much' is not a number. See 'fathom paint --help'.");
  EXPECT_EQ(sample.error({"wall", "--colour", "gren"}),
            "--colour 'gren' is not known. Did you mean 'green'? Choose from: red, green");
  EXPECT_EQ(sample.error({"wall", "--jsn"}),
            "unknown option '--jsn'. Did you mean '--json'? See 'fathom paint --help'.");
  EXPECT_EQ(sample.error({}), "PLACE is required. See 'fathom paint --help'.");
  EXPECT_EQ(sample.error({"wall", "--doors", "0"}),
            "--doors: '0' is not a whole number of at least 1. See 'fathom paint --help'.");
}

TEST(Command, TheParserSpeaksOurWords) {
  Sample sample;
  EXPECT_EQ(sample.error({"wall", "--share"}), "--share needs a value. See 'fathom paint --help'.");
  EXPECT_EQ(sample.error({"wall", "--count"}), "--count needs a value. See 'fathom paint --help'.");
  EXPECT_EQ(sample.error({"wall", "--json=3"}),
            "--json takes no value. See 'fathom paint --help'.");
  EXPECT_EQ(sample.error({"wall", "-n", "3", "-n", "4"}),
            "--count is given 2 times; give it once. See 'fathom paint --help'.");
}

TEST(Command, HiddenOnesStayOutOfHelp) {
  Sample sample;
  sample.command->hide();
  EXPECT_TRUE(sample.tree.root().subcommands().empty());
  EXPECT_EQ(sample.read({"wall"}).command, sample.command);
}

}  // namespace
}  // namespace fathom
