// Whole-file reading and atomic writing, with errors that name the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fathom {

/// The whole file as bytes; DataError when it is missing, a folder, or larger than `limit_bytes`.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit_bytes = 1u << 28);

/// Writes to a temporary name next to `path`, syncs and renames: readers see the old file or the
/// new one, never a part; a full disk leaves the old one intact.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Writes where a user pointed: a pipe, a device or an open descriptor (/dev/stdout) receives the
/// bytes; everything else is written atomically.
void write_file_or_device(const std::filesystem::path& path, std::string_view content);

/// The path that a chain of symlinks ends at, existing or not; DataError when it never ends.
std::filesystem::path behind_symlinks(std::filesystem::path path);

/// Writes all bytes to an open file, pipe or device; the error number, 0 when all went well.
int write_to_handle(int handle, std::string_view content);

}  // namespace fathom
