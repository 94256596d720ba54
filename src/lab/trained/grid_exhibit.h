// A grid of runs as a table and a chart of the same numbers.
#pragma once

#include <functional>
#include <string>

#include "lab/trained/loss_grid.h"

namespace fathom::lab {

struct GridLook {
  std::string title, corner;  // of the table, and of its first column
  std::string chart, x_label, y_label;
  std::function<std::string(std::int64_t row)> row_name;
  std::function<std::string(std::int64_t column)> column_name;
  std::function<std::string(const ChartDot&)> cell;
  std::function<double(std::int64_t column)> x = {};  // in the chart; absent: the column itself
};

/// A row of the table and a series of the chart for each row of the grid; x is drawn as its
/// logarithm. A cell without runs stays empty.
void show_grid(const LossGrid& grid, const GridLook& look, Conclusion& conclusion);

/// "97.1 (95.0 to 98.2)", in percent.
std::string percent_range(const ChartDot& dot);

}  // namespace fathom::lab
