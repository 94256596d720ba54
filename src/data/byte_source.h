// A stream of bytes from a file or standard input; .gz, .xz and .zst are
// recognised by content.
//
// Memory: one buffer of 256 KiB, plus the decoder's window (at most 128 MiB for zstd, 512 MiB for
// xz; larger settings are refused with a DataError).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace fathom::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills a part of `out`, at least one byte; 0 means the end. DataError when reading or decoding
  /// fails, also when a compressed stream ends early.
  virtual std::size_t read(std::span<char> out) = 0;
  /// Bytes taken from the file so far, before decompression: for progress.
  virtual std::uint64_t consumed() const = 0;
};

/// "-" is standard input. DataError when the path cannot be opened or is a folder.
std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path);

}  // namespace fathom::data
