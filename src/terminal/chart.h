// A line chart for the terminal: braille dots (2 x 4 per character) or asterisks without Unicode.
#pragma once

#include <string>
#include <vector>

#include "terminal/terminal.h"

namespace fathom {

struct ChartPoint {
  double x;
  double y;
};

/// A labelled place on the x axis, drawn as a marker below it.
struct ChartMarker {
  double x;
  std::string label;
};

struct Chart {
  std::vector<ChartPoint> line;
  std::vector<ChartMarker> markers;
  bool log_x = false;
  double y_max = 1;      // the line is clipped above
  double shade_low = 0;  // x range marked on the axis; none when low >= high
  double shade_high = 0;
  std::string y_format = "{:.1f}";  // fmt format of the y labels
  std::size_t width = 64;           // characters of the plotting area
  std::size_t height = 10;
};

std::string render_chart(const Chart& chart, const Terminal& terminal);

}  // namespace fathom
