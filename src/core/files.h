// Whole-file reading and atomic writing, with errors that name the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fathom {

/// The whole file as bytes; DataError when it is missing, a folder, or larger than `limit_bytes`.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit_bytes = 1u << 28);

/// Writes to a temporary name beside `path`, syncs and renames: readers see the old file or the
/// new one, never a part; a full disk leaves the old one intact.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace fathom
