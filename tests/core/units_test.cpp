#include "core/units.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace fathom {
namespace {

TEST(ParseCount, ReadsSuffixesAndExponents) {
  EXPECT_DOUBLE_EQ(parse_count("1.3B", "size"), 1.3e9);
  EXPECT_DOUBLE_EQ(parse_count("350M", "size"), 350e6);
  EXPECT_DOUBLE_EQ(parse_count("1e12", "size"), 1e12);
  EXPECT_DOUBLE_EQ(parse_count("64k", "size"), 64e3);
  EXPECT_DOUBLE_EQ(parse_count(" 2 T ", "size"), 2e12);
}

TEST(ParseCount, RefusesNonsenseInOneLineThatNamesTheValue) {
  for (const char* text : {"-3B", "0", "1.3Q", "", "B", "1.3BB", "nan", "inf", "1e400", "1,3B"}) {
    try {
      parse_count(text, "SIZE");
      ADD_FAILURE() << "accepted " << text;
    } catch (const ConfigError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("SIZE '" + std::string(text) + "'"), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos);
      EXPECT_EQ(error.exit_code(), 2);
    }
  }
}

TEST(ParseWhole, RefusesFractions) {
  EXPECT_EQ(parse_whole("64K", "vocab"), 64000);
  EXPECT_THROW(parse_whole("2.5", "vocab"), ConfigError);
}

TEST(ParseWholeList, TakesNumbersAndRisingRanges) {
  EXPECT_EQ(parse_whole_list("1-4,8", "--widths"), (std::vector<std::int64_t>{1, 2, 3, 4, 8}));
  EXPECT_EQ(parse_whole_list("64", "--widths"), (std::vector<std::int64_t>{64}));
  for (const char* text : {"4-1", "1-5000", "a", "", "1,,2", "1-"}) {
    EXPECT_THROW(parse_whole_list(text, "--widths"), ConfigError) << text;
  }
}

TEST(ParseBytes, TakesWhatPeopleWrite) {
  EXPECT_DOUBLE_EQ(parse_bytes("16GB", "--memory"), 16e9);
  EXPECT_DOUBLE_EQ(parse_bytes("16 G", "--memory"), 16e9);
  EXPECT_DOUBLE_EQ(parse_bytes("500 mb", "--memory"), 500e6);
  EXPECT_THROW(parse_bytes("lots", "--memory"), ConfigError);
}

TEST(FormatPower, KeepsDigitsWhileItCan) {
  EXPECT_EQ(format_power(3, 4), format_significant(81, 4));
  EXPECT_EQ(format_power(10, 45), "1e+45");
  EXPECT_EQ(format_power(10, 12345), "10^12345");
}

TEST(ParseFraction, TakesPercentAndShare) {
  EXPECT_DOUBLE_EQ(parse_fraction("0.5%", "tolerance"), 0.005);
  EXPECT_DOUBLE_EQ(parse_fraction("0.005", "tolerance"), 0.005);
  EXPECT_THROW(parse_fraction("1.5", "tolerance"), ConfigError);
  EXPECT_THROW(parse_fraction("5x", "tolerance"), ConfigError);
}

TEST(Format, CountsBytesAndTimesReadWell) {
  EXPECT_EQ(format_count(1.3e9), "1.30B");
  EXPECT_EQ(format_count(124439808), "124M");
  EXPECT_EQ(format_count(999.7e3), "1.00M");
  EXPECT_EQ(format_count(42), "42.0");
  EXPECT_EQ(format_whole(124439808), "124,439,808");
  EXPECT_EQ(format_whole(-1234), "-1,234");
  EXPECT_EQ(format_whole(999), "999");
  EXPECT_EQ(format_bytes(16.1e9), "16.1 GB");
  EXPECT_EQ(format_bytes(12), "12.0 B");
  EXPECT_EQ(format_seconds(0.00321), "3.21 ms");
  EXPECT_EQ(format_seconds(90), "90.0 s");
  EXPECT_EQ(format_percent(0.0031), "+0.31 %");
}

TEST(Format, NumbersWithoutAnExponent) {
  EXPECT_EQ(format_significant(0, 3), "0");
  EXPECT_EQ(format_significant(INFINITY, 3), "inf");
  EXPECT_EQ(format_significant(-INFINITY, 3), "-inf");
  EXPECT_EQ(format_significant(NAN, 3), "nan");
  EXPECT_EQ(format_significant(5e-324, 3), "4.94e-324");
}

}  // namespace
}  // namespace fathom
