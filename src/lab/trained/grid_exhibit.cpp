#include "lab/trained/grid_exhibit.h"

#include <fmt/format.h>

namespace fathom::lab {

void show_grid(const LossGrid& grid, const GridLook& look, Conclusion& conclusion) {
  ExhibitTable table{look.title, {look.corner}, {}};
  ExhibitChart chart{look.chart, look.x_label, look.y_label, true, false, {}};
  for (const std::int64_t column : grid.columns()) {
    table.columns.push_back(look.column_name(column));
  }
  for (const std::int64_t each : grid.rows()) {
    std::vector<std::string> row{look.row_name(each)};
    ChartSeries series{look.row_name(each), {}};
    for (const std::int64_t column : grid.columns()) {
      if (!grid.has(each, column)) {
        row.emplace_back("");
        continue;
      }
      ChartDot dot = grid.dot(each, column);
      row.push_back(look.cell(dot));
      if (look.x) dot.x = look.x(column);
      series.dots.push_back(dot);
    }
    table.rows.push_back(std::move(row));
    chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

std::string percent_range(const ChartDot& dot) {
  return fmt::format("{} ({} to {})", percent(dot.y), percent(*dot.low), percent(*dot.high));
}

}  // namespace fathom::lab
