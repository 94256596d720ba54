// Whole TOML files that Fathom writes: the text behind a first line with its checksum
// (core/checksum.h), a comment that TomlReader checks. First, because a file cut at a line's end is
// still TOML.
#pragma once

#include <string>
#include <string_view>

namespace fathom {

/// The text with its checksum, in place of one it may have had.
std::string toml_file_text(std::string_view text);

/// The text without that line.
std::string_view without_checksum(std::string_view toml);

/// DataError when the text has a checksum of another text.
void require_toml_checksum(std::string_view text, const std::string& origin);

}  // namespace fathom
