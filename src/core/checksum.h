// Checksums of what Fathom writes: a file that a disk or a copy has changed is noticed when it is
// read, and named.
//
// A text carries its checksum as a value of its own format (a JSON key, a TOML comment, a column of
// a CSV header, safetensors metadata): "xxh3:" and sixteen hexadecimal digits, the low half of the
// XXH3-128 of the whole text with those digits as zeros. A writer puts kOpenChecksum there and
// closes it; a reader finds the value in its format and compares it with the text. Texts without
// one, of older versions or from elsewhere, are read as they are. It catches damage, not an
// adversary. FATHOM_VERIFY=off in the environment turns all checking off.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fathom {

/// Whether checksums are checked; asked once per process.
bool verification_is_on();

/// What a writer puts where the checksum will go.
inline constexpr std::string_view kOpenChecksum = "xxh3:0000000000000000";
/// The key or word that announces a checksum in every format.
inline constexpr const char* kChecksum = "checksum";

/// The text with its last open checksum filled in.
std::string close_checksum(std::string text);
/// False when `value`, found in `text`, is a checksum of another text.
bool checksum_holds(std::string_view text, std::string_view value);
/// DataError that names `origin` unless the checksum holds or verification is off. `to_accept`:
/// what to do after an edit by hand.
void require_checksum(std::string_view text, std::string_view value, const std::string& origin,
                      std::string_view to_accept);

/// The checksum of bytes, as sixteen digits.
std::string checksum_digits(std::span<const std::byte> bytes);

}  // namespace fathom
