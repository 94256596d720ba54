// Whole TOML files that Fathom writes: the text after a first line with its checksum
// (core/checksum.h), a comment that TomlReader checks. It comes first, because a file cut off at
// the end of a line is still TOML.
#pragma once

#include <string>
#include <string_view>

namespace fathom {

/// The text with its checksum, replacing any it had.
std::string toml_file_text(std::string_view text);

/// The text without that line.
std::string_view without_checksum(std::string_view toml);

/// DataError when the text has a checksum of another text.
void require_toml_checksum(std::string_view text, const std::string& origin);

}  // namespace fathom
