#include "core/utf8.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(Utf8, EveryCodePointRoundTripsAndSurrogatesDoNot) {
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    std::string text;
    append_utf8(text, c);
    std::size_t at = 0;
    const std::int32_t back = next_code_point(text, at);
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(back, surrogate ? -1 : static_cast<std::int32_t>(c));
    ASSERT_EQ(at, surrogate ? 0 : text.size());
  }
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8(""), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("ab\x80"), 2u);            // lone continuation
  EXPECT_EQ(find_invalid_utf8("ab\xC3"), 2u);            // cut short
  EXPECT_EQ(find_invalid_utf8("a\xE2\x82"), 1u);         // cut short
  EXPECT_EQ(find_invalid_utf8("\xC0\xAF"), 0u);          // overlong
  EXPECT_EQ(find_invalid_utf8("\xE0\x80\xAF"), 0u);      // overlong
  EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(find_invalid_utf8("x\xFF"), 1u);
}

TEST(Utf8, BoundariesFallBetweenCharacters) {
  const std::string text =
      "a\xE2\x82\xAC"
      "b";  // 1 + 3 + 1 bytes
  EXPECT_EQ(utf8_boundary(text, 0), 0u);
  EXPECT_EQ(utf8_boundary(text, 1), 1u);
  EXPECT_EQ(utf8_boundary(text, 2), 1u);
  EXPECT_EQ(utf8_boundary(text, 3), 1u);
  EXPECT_EQ(utf8_boundary(text, 4), 4u);
  EXPECT_EQ(utf8_boundary(text, 99), 5u);
  EXPECT_EQ(utf8_boundary(std::string(10, '\x80'), 7), 7u);
}

TEST(Utf8, InvalidBytesAreReplacedOneByOne) {
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82\xFF\xC3\xA9"), "a\uFFFD\uFFFD\uFFFD\u00e9");
}

}  // namespace
}  // namespace fathom
