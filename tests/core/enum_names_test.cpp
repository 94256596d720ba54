#include "core/enum_names.h"

#include <gtest/gtest.h>

#include "core/enum_array.h"
#include "core/error.h"
#include "scratch_folder.h"

namespace fathom {
namespace paint {

enum class Colour : std::uint8_t { red, dark_green, blue2 };
constexpr auto enum_names(Colour) {
  return std::array{"red", "dark green", "blue2"};
}

}  // namespace paint

namespace {

enum class Hidden { first, second };
constexpr auto enum_names(Hidden) {
  return std::array{"first", "second"};
}

using paint::Colour;

static_assert(detail::is_enumerator<Colour::blue2>());
static_assert(!detail::is_enumerator<static_cast<Colour>(3)>());
static_assert(!detail::is_enumerator<static_cast<Hidden>(2)>());
static_assert(kEnumCount<Colour> == 3);
static_assert(find_enum<Colour>("dark green") == Colour::dark_green);
static_assert(!find_enum<Colour>("dark_green"));

TEST(EnumNames, WriteAndReadFromOneTable) {
  for (const Colour colour : kEnumValues<Colour>) {
    EXPECT_EQ(find_enum<Colour>(to_string(colour)), colour);
  }
  EXPECT_EQ(to_string(Hidden::second), "second");
  EXPECT_EQ(list_names<Colour>(), (std::vector<std::string>{"red", "dark green", "blue2"}));
}

TEST(EnumNames, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_EQ(parse_enum<Colour>("red", "colour"), Colour::red);
  EXPECT_EQ(error_of<ConfigError>([] { parse_enum<Colour>("rad", "colour"); }),
            "colour 'rad' is not known. Did you mean 'red'? Choose from: red, dark green, blue2");
}

TEST(EnumArray, HoldsOneElementForEveryValue) {
  EnumArray<Colour, int> counts;
  counts[Colour::blue2] += 3;
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts[Colour::red], 0);
  EXPECT_EQ(counts[Colour::blue2], 3);
}

}  // namespace
}  // namespace fathom
