// Comma-separated tables with a header line and double quotes where needed (RFC 4180).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fathom {

class CsvTable {
 public:
  /// Parses the text; DataError names `origin` and the line of a malformed row.
  CsvTable(std::string_view text, std::string origin);

  std::size_t size() const { return rows_.size(); }
  /// In the order of the header.
  const std::vector<std::string>& columns() const { return names_; }
  bool has_column(const std::string& column) const { return columns_.contains(column); }
  /// The cell as text; DataError when the column does not exist.
  const std::string& cell(std::size_t row, const std::string& column) const;
  /// The cell as a number; `fallback` when it is empty, DataError when it is not a number.
  double number(std::size_t row, const std::string& column, double fallback = 0) const;

 private:
  std::string origin_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// One line of a table; texts with commas, quotes or line breaks are quoted.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace fathom
