// Whole JSON files: written with a checksum (core/checksum.h), read with errors that name the file.
// Include only in .cpp files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fathom {

/// The document with its checksum as the last key, and a line end; read_json_file checks it.
std::string json_file_text(nlohmann::ordered_json document, int indent = 2);

/// The same as one line of a file of lines, without its end.
std::string json_line(nlohmann::ordered_json document);

/// DataError "ORIGIN: type must be number, but is string".
[[noreturn]] void throw_json_error(const std::string& origin,
                                   const nlohmann::json::exception& error);

/// Runs `read`; where it asks of a JSON value what the value is not, a DataError names `origin`.
template <class Read>
auto with_json_errors(const std::string& origin, const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    throw_json_error(origin, error);
  }
}

}  // namespace fathom
