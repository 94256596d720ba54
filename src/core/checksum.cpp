#include "core/checksum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "core/hash.h"

namespace fathom {
namespace {

constexpr std::size_t kDigits = 16;
constexpr std::size_t kPrefix = kOpenChecksum.size() - kDigits;

std::string digits_of(const Hash128& hash) {
  return fmt::format("{:016x}", hash.low);
}

/// "xxh3:" and sixteen digits; anything else is a foreign value.
bool is_checksum(std::string_view value) {
  return value.size() == kOpenChecksum.size() &&
         value.substr(0, kPrefix) == kOpenChecksum.substr(0, kPrefix) &&
         value.find_first_not_of("0123456789abcdef", kPrefix) == std::string_view::npos;
}

}  // namespace

bool verification_is_on() {
  static const bool on = [] {
    const char* wish = std::getenv("FATHOM_VERIFY");
    return wish == nullptr || std::string_view(wish) != "off";
  }();
  return on;
}

std::string close_checksum(std::string text) {
  const std::size_t at = text.rfind(kOpenChecksum);
  if (at == std::string::npos) throw InternalError("a text without a place for its checksum");
  return text.replace(at + kPrefix, kDigits, digits_of(hash_bytes(text)));
}

bool checksum_holds(std::string_view text, std::string_view value) {
  if (!is_checksum(value)) return true;
  const std::size_t at = text.find(value);
  if (at == std::string_view::npos) return false;
  Hasher hasher;
  hasher.add(text.substr(0, at));
  hasher.add(kOpenChecksum);
  hasher.add(text.substr(at + value.size()));
  return digits_of(hasher.value()) == value.substr(kPrefix);
}

void require_checksum(std::string_view text, std::string_view value, const std::string& origin,
                      std::string_view to_accept) {
  if (!verification_is_on() || checksum_holds(text, value)) return;
  throw DataError(fmt::format(
      "{}: damaged: its content does not match its checksum; restore it, {}", origin, to_accept));
}

std::string checksum_digits(std::span<const std::byte> bytes) {
  return digits_of(hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

}  // namespace fathom
