#include "terminal/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"

namespace fathom {
namespace {

/// Dots of one braille character: U+2800 plus a bit per dot.
constexpr int kDotBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

std::string utf8(int code_point) {
  return {static_cast<char>(0xE0 | (code_point >> 12)),
          static_cast<char>(0x80 | ((code_point >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

class Scale {
 public:
  Scale(const Chart& chart) : log_(chart.log_x) {
    low_ = transform(chart.line.front().x);
    high_ = transform(chart.line.back().x);
  }
  /// Position in [0, 1].
  double share(double x) const { return (transform(x) - low_) / (high_ - low_); }
  double value(double share) const {
    const double t = low_ + share * (high_ - low_);
    return log_ ? std::exp(t) : t;
  }

 private:
  double transform(double x) const { return log_ ? std::log(x) : x; }
  bool log_;
  double low_ = 0;
  double high_ = 1;
};

double interpolate(const std::vector<ChartPoint>& line, double x) {
  const auto right = std::lower_bound(line.begin(), line.end(), x,
                                      [](const ChartPoint& p, double v) { return p.x < v; });
  if (right == line.begin()) return line.front().y;
  if (right == line.end()) return line.back().y;
  const auto left = right - 1;
  const double t = (x - left->x) / (right->x - left->x);
  return left->y + t * (right->y - left->y);
}

/// Rows of dot masks for the curve; a vertical run joins neighbouring columns.
std::vector<std::vector<int>> plot(const Chart& chart, const Scale& scale) {
  std::vector<std::vector<int>> cells(chart.height, std::vector<int>(chart.width, 0));
  const int dot_rows = static_cast<int>(chart.height) * 4;
  const int dot_columns = static_cast<int>(chart.width) * 2;
  int previous = -1;
  for (int column = 0; column < dot_columns; ++column) {
    const double x = scale.value((column + 0.5) / dot_columns);
    const double y = interpolate(chart.line, x) / chart.y_max;
    const int row = dot_rows - 1 - static_cast<int>(std::floor(y * (dot_rows - 1) + 0.5));
    if (row < 0) {
      previous = -1;
      continue;
    }
    // Join to the neighbouring column without repeating its dot.
    const int start = previous < 0 || previous == row ? row
                      : previous < row                ? previous + 1
                                                      : previous - 1;
    for (int r = std::min(start, row); r <= std::max(start, row); ++r) {
      if (r < 0 || r >= dot_rows) continue;
      cells[static_cast<std::size_t>(r / 4)][static_cast<std::size_t>(column / 2)] |=
          kDotBits[r % 4][column % 2];
    }
    previous = row;
  }
  return cells;
}

std::string axis_line(const Chart& chart, const Scale& scale) {
  std::string line;
  for (std::size_t c = 0; c < chart.width; ++c) {
    const double x = scale.value((static_cast<double>(c) + 0.5) / static_cast<double>(chart.width));
    line += x >= chart.shade_low && x <= chart.shade_high ? "━" : "─";
  }
  return line;
}

/// Places texts at columns, leftmost first, dropping one that would touch its neighbour.
std::string place(std::vector<std::pair<std::size_t, std::string>> texts, std::size_t width) {
  std::sort(texts.begin(), texts.end());
  std::string line;
  std::size_t used = 0;
  for (const auto& [column, text] : texts) {
    const std::size_t size = display_width(text);
    std::size_t start = column >= size / 2 ? column - size / 2 : 0;
    start = std::min(start, width > size ? width - size : 0);
    if (used > 0 && start < used + 1) continue;
    line += std::string(start - used, ' ') + text;
    used = start + size;
  }
  return line;
}

}  // namespace

std::string render_chart(const Chart& chart, const Terminal& terminal) {
  if (chart.line.size() < 2) return "";
  const Scale scale(chart);
  const auto cells = plot(chart, scale);
  const auto column_of = [&](double x) {
    const double share = std::clamp(scale.share(x), 0.0, 1.0);
    return static_cast<std::size_t>(share * static_cast<double>(chart.width - 1) + 0.5);
  };

  std::size_t label_width = 0;
  for (const double y : {0.0, chart.y_max}) {
    label_width =
        std::max(label_width, display_width(fmt::format(fmt::runtime(chart.y_format), y)));
  }
  std::string text;
  for (std::size_t row = 0; row < chart.height; ++row) {
    std::string label;
    const double share = 1 - (static_cast<double>(row) + 0.5) / static_cast<double>(chart.height);
    if (row % 3 == 0) label = fmt::format(fmt::runtime(chart.y_format), share * chart.y_max);
    text += "  " + pad(label, label_width, Align::right) + " │";
    for (const int mask : cells[row]) {
      text += mask == 0 ? std::string(" ") : terminal.unicode ? utf8(0x2800 + mask) : "*";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  const std::string margin(label_width + 4, ' ');
  text += std::string(label_width + 3, ' ') + "└" + axis_line(chart, scale) + "\n";

  std::vector<std::pair<std::size_t, std::string>> ticks;
  for (int i = 0; i <= 6; ++i) {
    const double x = scale.value(i / 6.0);
    ticks.emplace_back(column_of(x), fmt::format("{:.0f}", x));
  }
  text += margin + place(ticks, chart.width) + "\n";
  std::vector<std::pair<std::size_t, std::string>> arrows;
  for (const ChartMarker& marker : chart.markers) {
    arrows.emplace_back(column_of(marker.x), marker.label);
  }
  if (!arrows.empty()) text += margin + place(arrows, chart.width) + "\n";
  return terminal.plain(text);
}

}  // namespace fathom
