// Aligned text tables for the terminal.
#pragma once

#include <string>
#include <vector>

#include "core/text.h"
#include "terminal/terminal.h"

namespace fathom {

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Missing cells at the end are empty; more cells than columns is an InternalError.
  void add_row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Header, rule, rows; two spaces between columns, no trailing spaces.
  std::string render(const Terminal& terminal, std::size_t indent = 2) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fathom
