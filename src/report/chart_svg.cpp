#include "report/chart_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace fathom::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWidth = 760, kHeight = 380;
constexpr double kLeft = 64, kRight = 560, kTop = 40, kBottom = 320;
constexpr std::size_t kMostInLegend = 16;
constexpr std::array kColours{"#1f6fb2", "#d1603d", "#3a8f5c", "#8a5fb0",
                              "#b08a1f", "#3fa5a5", "#b04a7a", "#6b6b6b"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

/// One axis: from values to places on the page.
class Axis {
 public:
  Axis(bool logarithmic, double from, double to) : log_(logarithmic), from_(from), to_(to) {}

  void take(double value) {
    if (!std::isfinite(value) || (log_ && value <= 0)) return;
    whole_ = whole_ && value == std::floor(value);
    if (values_.size() <= kMostOwnTicks) values_.insert(value);
    low_ = std::min(low_, scaled(value));
    high_ = std::max(high_, scaled(value));
  }
  bool shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  double place(double value) const {
    const double span = high_ > low_ ? high_ - low_ : 1;
    return from_ + (to_ - from_) * (scaled(value) - low_) / span;
  }
  /// Round values that lie on the axis.
  std::vector<double> ticks() const {
    std::vector<double> all;
    if (!(low_ <= high_)) return all;
    if (log_ && values_.size() <= kMostOwnTicks) return {values_.begin(), values_.end()};
    if (log_) {
      for (double power = std::floor(low_); power <= high_ + 1e-9; ++power) {
        for (const double factor : {1.0, 3.0}) add_tick(factor * std::pow(10, power), all);
      }
      return all;
    }
    const double rough = (high_ - low_) / 6;
    const double power = std::pow(10, std::floor(std::log10(std::max(rough, 1e-12))));
    double step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : 5);
    if (whole_) step = std::max(step, 1.0);  // there are no half layers
    for (double i = std::ceil(low_ / step); i * step <= high_ + 1e-9 * step; ++i) {
      all.push_back(i * step);
    }
    return all;
  }

 private:
  double scaled(double value) const { return log_ ? std::log10(value) : value; }
  void add_tick(double value, std::vector<double>& all) const {
    if (scaled(value) >= low_ - 1e-9 && scaled(value) <= high_ + 1e-9) all.push_back(value);
  }

  /// A few values on a logarithmic axis (depths, rates) are their own ticks.
  static constexpr std::size_t kMostOwnTicks = 7;

  bool log_;
  bool whole_ = true;
  std::set<double> values_;  // one more than that at most
  double from_, to_;
  double low_ = INFINITY, high_ = -INFINITY;
};

double number(const Json& point, const char* key) {
  const auto found = point.find(key);
  return found == point.end() || !found->is_number() ? NAN : found->get<double>();
}

std::string draw_series(const Json& series, const Axis& x, const Axis& y, const char* colour) {
  std::string line, marks;
  for (const Json& point : series.at("points")) {
    const double px = number(point, "x"), py = number(point, "y");
    if (!x.shows(px) || !y.shows(py)) continue;
    line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x.place(px), y.place(py));
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" fill=\"{}\"/>\n",
                         x.place(px), y.place(py), colour);
    const double low = number(point, "low"), high = number(point, "high");
    if (!y.shows(low) || !y.shows(high) || low == high) continue;
    marks += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n",
        x.place(px), y.place(low), y.place(high), colour);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n{}", line, colour,
                     marks);
}

std::string draw_frame(const Json& chart, const Axis& x, const Axis& y) {
  std::string out;
  for (const double tick : y.ticks()) {
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
        kLeft, kRight, y.place(tick), kLeft - 6, y.place(tick) + 4, tick);
  }
  for (const double tick : x.ticks()) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g}</text>\n",
                       x.place(tick), kBottom + 18, tick);
  }
  const auto text = [&](const char* key) { return escaped(chart.at(key).get<std::string>()); };
  const double middle = (kTop + kBottom) / 2;
  return out + fmt::format(
                   "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" "
                   "stroke=\"#888\"/>\n"
                   "<text x=\"{}\" y=\"22\" font-weight=\"600\">{}</text>\n"
                   "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
                   "<text x=\"16\" y=\"{}\" text-anchor=\"middle\" "
                   "transform=\"rotate(-90 16 {})\">{}</text>\n",
                   kLeft, kTop, kRight - kLeft, kBottom - kTop, kLeft, text("title"),
                   (kLeft + kRight) / 2, kBottom + 40, text("x"), middle, middle, text("y"));
}

}  // namespace

std::string chart_svg(const Json& chart) {
  Axis x(chart.at("log_x").get<bool>(), kLeft + 10, kRight - 10);
  Axis y(chart.at("log_y").get<bool>(), kBottom - 10, kTop + 10);
  for (const Json& series : chart.at("series")) {
    for (const Json& point : series.at("points")) {
      x.take(number(point, "x"));
      for (const char* key : {"y", "low", "high"}) y.take(number(point, key));
    }
  }
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  out += draw_frame(chart, x, y);
  std::size_t index = 0;
  for (const Json& series : chart.at("series")) {
    const char* colour = kColours[index % kColours.size()];
    out += draw_series(series, x, y, colour);
    if (index < kMostInLegend) {
      const double at = kTop + 10 + 17 * static_cast<double>(index);
      out += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"4\" fill=\"{}\"/>"
          "<text x=\"{}\" y=\"{}\">{}</text>\n",
          kRight + 14, at - 6, colour, kRight + 32, at,
          escaped(series.at("name").get<std::string>()));
    }
    ++index;
  }
  return out + "</svg>\n";
}

}  // namespace fathom::report
