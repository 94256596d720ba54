// Tables and charts as text.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "terminal/chart.h"
#include "terminal/table.h"

namespace fathom {
namespace {

TEST(Table, AlignsByDisplayWidthWithoutTrailingBlanks) {
  Table table({{"name"}, {"d²", Align::right}, {"note"}});
  table.add_row({"a", "12", "x"});
  table.add_row({"longer", "3"});
  EXPECT_EQ(table.render(Terminal{}),
            "  name    d²  note\n"
            "  a       12  x\n"
            "  longer   3\n");
  EXPECT_THROW(table.add_row({"1", "2", "3", "4"}), InternalError);
}

TEST(Terminal, PaintsOnlyWithColourAndFallsBackToAscii) {
  Terminal plain;
  EXPECT_EQ(plain.bold("x"), "x");
  plain.colour = true;
  EXPECT_EQ(plain.bold("x"), "\x1b[1mx\x1b[0m");
  plain.unicode = false;
  EXPECT_EQ(plain.plain("12·L×d² ≥ 3"), "12.Lxd^2 >= 3");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  lines.pop_back();
  return lines;
}

TEST(Chart, DrawsAFallingLineFromTopLeftToBottomRight) {
  Chart chart;
  chart.line = {{0, 1}, {1, 0}};
  chart.width = 10;
  chart.height = 5;
  chart.markers = {{0.5, "m"}};
  Terminal ascii;
  ascii.unicode = false;
  const auto lines = lines_of(render_chart(chart, ascii));
  ASSERT_EQ(lines.size(), 8u);  // five rows, axis, ticks, markers
  EXPECT_LT(lines[0].find('*'), lines[4].find('*'));
  EXPECT_NE(lines[7].find('m'), std::string::npos);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 10u + 10u);
}

TEST(Chart, AFlatLineIsOneDotHigh) {
  Chart chart;
  chart.line = {{1, 0}, {100, 0}};
  chart.log_x = true;
  chart.width = 8;
  chart.height = 2;
  const auto lines = lines_of(render_chart(chart, Terminal{}));
  // Only the lowest dots of the last row: U+28C0.
  EXPECT_NE(lines[1].find("\u28C0\u28C0\u28C0\u28C0\u28C0\u28C0\u28C0\u28C0"), std::string::npos);
  EXPECT_EQ(lines[0].find("\u28C0"), std::string::npos);
  EXPECT_EQ(render_chart(Chart{}, Terminal{}), "");
}

}  // namespace
}  // namespace fathom
