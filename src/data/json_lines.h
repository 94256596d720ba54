// Documents of a JSONL file: each line is a JSON object, and one of its fields is the text.
//
// Memory: one line and its text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/line_reader.h"

namespace fathom::data {

/// Whether a file of this name is JSONL, packed or not: "a.jsonl", "a.ndjson.gz".
bool is_json_lines_name(std::filesystem::path name);
/// Whether a file that begins with this line is JSONL with such a field.
bool looks_like_json_lines(std::string_view first_line, const std::string& field);

class JsonLines {
 public:
  JsonLines(LineReader lines, std::string field, std::string name)
      : lines_(std::move(lines)), field_(std::move(field)), name_(std::move(name)) {}

  /// The text of the next line that has any; false at the end. DataError names a line that is not
  /// an object or lacks the field.
  bool next(std::string& text);
  /// Where the line of the last text began in the unpacked file.
  std::uint64_t line_offset() const { return line_offset_; }
  std::uint64_t consumed() const { return lines_.consumed(); }

 private:
  bool read_line(std::string& line);

  LineReader lines_;
  std::string field_, name_;
  std::uint64_t line_number_ = 0, offset_ = 0, line_offset_ = 0;
};

}  // namespace fathom::data
