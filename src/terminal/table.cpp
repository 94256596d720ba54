#include "terminal/table.h"

#include <algorithm>

#include "core/error.h"

namespace fathom {

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() > columns_.size()) throw InternalError("a table row has too many cells");
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::render(const Terminal& terminal, std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }

  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells, bool header) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool last = c + 1 == cells.size();
      const std::string cell = last && columns_[c].align == Align::left
                                   ? cells[c]
                                   : pad(cells[c], widths[c], columns_[c].align);
      line += header ? terminal.dim(cell) : cell;
      if (!last) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };

  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  add_line(titles, true);
  for (const auto& row : rows_) add_line(row, false);
  return terminal.plain(text);
}

}  // namespace fathom
