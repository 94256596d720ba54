#include "core/json_file.h"

#include <fmt/format.h>

#include "core/checksum.h"
#include "core/error.h"
#include "core/json_reader.h"
#include "core/json_text.h"

namespace fathom {

std::string json_file_text(nlohmann::ordered_json document, int indent) {
  document[kChecksum] = kOpenChecksum;
  return close_checksum(json_text(document, indent) + "\n");
}

std::string json_line(nlohmann::ordered_json document) {
  document[kChecksum] = kOpenChecksum;
  return close_checksum(json_text(document, -1));
}

void throw_json_error(const std::string& origin, const nlohmann::json::exception& error) {
  throw DataError(fmt::format("{}: {}", origin, json_problem(error)));
}

}  // namespace fathom
