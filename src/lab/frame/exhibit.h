// What an experiment shows: tables and charts as data, drawn by the terminal and by the page alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fathom::lab {

struct ExhibitTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct ChartDot {
  double x = 0;
  double y = 0;
  std::optional<double> low = {};  // an interval around y
  std::optional<double> high = {};
};

struct ChartSeries {
  std::string name;
  std::vector<ChartDot> dots;
};

struct ExhibitChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;
  bool log_y = false;
  std::vector<ChartSeries> series;
};

}  // namespace fathom::lab
