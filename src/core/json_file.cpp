#include "core/json_file.h"

#include <fmt/format.h>

#include "core/checksum.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"

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
  // "[json.exception.type_error.302] type must be number, but is string": the words behind the tag.
  std::string_view what = error.what();
  if (const auto end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
  throw DataError(fmt::format("{}: {}", origin, printable(what, 300)));
}

}  // namespace fathom
