#include "core/text.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace fathom {
namespace {

TEST(DisplayWidth, CountsCodePointsNotBytesOrEscapes) {
  EXPECT_EQ(display_width("12×768"), 6u);
  EXPECT_EQ(display_width("\x1b[1;36mbold\x1b[0m"), 4u);
}

TEST(Pad, AlignsByDisplayWidth) {
  EXPECT_EQ(pad("d²", 4, Align::right), "  d²");
  EXPECT_EQ(pad("ab", 4, Align::left), "ab  ");
  EXPECT_EQ(pad("abcdef", 4, Align::left), "abcdef");
}

TEST(Wrap, BreaksAtSpacesAndKeepsLineBreaks) {
  EXPECT_EQ(wrap("one two three\nfour", 8), (std::vector<std::string>{"one two", "three", "four"}));
  EXPECT_EQ(wrap("costs 16 % loss", 9), (std::vector<std::string>{"costs", "16 % loss"}));
}

TEST(Closest, FindsTyposAndSwapsButNotStrangers) {
  const std::vector<std::string> commands{"plan", "shape", "bounds"};
  EXPECT_EQ(closest("plna", commands), "plan");
  EXPECT_EQ(closest("bound", commands), "bounds");
  EXPECT_EQ(closest("Shpae", commands), "shape");
  EXPECT_FALSE(closest("zebra", commands).has_value());
  EXPECT_EQ(did_you_mean("plna", commands), " Did you mean 'plan'?");
  EXPECT_EQ(did_you_mean("zebra", commands), "");
  EXPECT_EQ(did_you_mean("gemst", {"levine2020", "gemstones2025"}),
            " Did you mean 'gemstones2025'?");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
}

TEST(Closest, AVeryLongWordIsNotGuessedAt) {
  EXPECT_EQ(closest(std::string(20'000'000, 'a'), {"layers", "width"}), std::nullopt);
}

TEST(Printable, LeavesATerminalNothingToObey) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\x7f"), "a?[31mb?c?");
  EXPECT_EQ(printable("a\xC2\x9B"
                      "31m\xC2\xA0\xC3\x9B"),
            "a??31m\xC2\xA0\xC3\x9B");  // C1, not Û
  EXPECT_EQ(printable("0123456789", 4), "0123...");
}

TEST(Error, IsOneLineWhateverItQuotes) {
  EXPECT_STREQ(DataError("'a\nb\tc\x1b[31m' is no number").what(), "'a b c [31m' is no number");
}

}  // namespace
}  // namespace fathom
