// Strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fathom {

/// Decodes the code point at `at` and moves `at` past it; returns -1 and leaves `at` when the bytes
/// there are not valid UTF-8. `at` must be inside the text.
std::int32_t next_code_point(std::string_view text, std::size_t& at);

/// Offset of the first byte that is not valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// Every byte that is not part of valid UTF-8 becomes U+FFFD: for showing text of unknown origin.
std::string replace_invalid_utf8(std::string_view text);

void append_utf8(std::string& text, std::uint32_t code_point);

/// The largest cut <= `at` that does not fall inside a character (0 when there is none).
std::size_t utf8_boundary(std::string_view text, std::size_t at);

}  // namespace fathom
