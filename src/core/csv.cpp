#include "core/csv.h"

#include <fmt/format.h>

#include <charconv>

#include "core/checksum.h"
#include "core/error.h"

namespace fathom {
namespace {

/// Consumes one record (a quoted cell may hold line breaks) and counts the lines it took.
std::vector<std::string> read_record(std::string_view& text, std::size_t& line,
                                     const std::string& origin) {
  std::vector<std::string> cells(1);
  const std::size_t first_line = line;
  bool quoted = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '"' && at + 1 < text.size() && text[at + 1] == '"') {
        cells.back() += '"';
        ++at;
      } else if (c == '"') {
        quoted = false;
      } else {
        line += c == '\n';
        cells.back() += c;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (quoted) throw DataError(fmt::format("{}:{}: a quote is not closed", origin, first_line));
  text.remove_prefix(std::min(at + 1, text.size()));
  ++line;
  return cells;
}

}  // namespace

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& cell = cells[i];
    if (i > 0) line += ',';
    if (cell.find_first_of(",\"\r\n") == std::string::npos) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) line += c == '"' ? "\"\"" : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

CsvTable::CsvTable(std::string_view text, std::string origin) : origin_(std::move(origin)) {
  std::size_t line = 1;
  const std::string_view whole = text;
  const std::vector<std::string> header = read_record(text, line, origin_);
  for (std::size_t i = 0; i < header.size(); ++i) columns_[header[i]] = i;
  names_ = header;
  require_checksum(whole, header.back(), origin_,
                   "or take the checksum out of its header if it was edited by hand");
  while (!text.empty()) {
    const std::size_t row_line = line;
    std::vector<std::string> cells = read_record(text, line, origin_);
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (cells.size() != header.size()) {
      throw DataError(fmt::format("{}:{}: {} cells, the header has {}", origin_, row_line,
                                  cells.size(), header.size()));
    }
    rows_.push_back(std::move(cells));
  }
}

const std::string& CsvTable::cell(std::size_t row, const std::string& column) const {
  const auto found = columns_.find(column);
  if (found == columns_.end()) {
    throw DataError(fmt::format("{}: there is no column '{}'", origin_, column));
  }
  return rows_.at(row)[found->second];
}

double CsvTable::number(std::size_t row, const std::string& column, double fallback) const {
  const std::string& text = cell(row, column);
  if (text.empty()) return fallback;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw DataError(fmt::format("{}: row {}, column '{}': '{}' is not a number", origin_, row + 2,
                                column, text));
  }
  return value;
}

}  // namespace fathom
