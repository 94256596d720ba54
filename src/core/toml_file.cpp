#include "core/toml_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/checksum.h"

namespace fathom {
namespace {

constexpr std::string_view kBegin = "# checksum ";
constexpr std::string_view kEnd = "; delete this line when you edit the file\n";

}  // namespace

std::string_view without_checksum(std::string_view toml) {
  if (!toml.starts_with(kBegin)) return toml;
  return toml.substr(std::min(toml.find('\n'), toml.size() - 1) + 1);
}

std::string toml_file_text(std::string_view text) {
  return close_checksum(
      fmt::format("{}{}{}{}", kBegin, kOpenChecksum, kEnd, without_checksum(text)));
}

void require_toml_checksum(std::string_view text, const std::string& origin) {
  if (!text.starts_with(kBegin)) return;
  require_checksum(text, text.substr(kBegin.size()).substr(0, kOpenChecksum.size()), origin,
                   "or delete its first line if it was edited by hand");
}

}  // namespace fathom
