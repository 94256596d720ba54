// Token files: one split of a corpus as fixed-width token ids, read through memory mapping.
//
// Layout, little-endian: a header of 128 bytes, `count` ids of 2 or 4 bytes, then a 64-bit hash
// (the low half of XXH3-128) of every 64 KiB of ids; nothing else.
//
//   0  "FATHOMTK"      8  version (u32, 2)     12  bytes per id (u32, 2 or 4)
//  16  vocabulary     24  count                32  documents      40  bytes of text   (u64 each)
//  48  hash of the ids (128 bits)              64  hash of the tokenizer (128 bits)
//  80  hash of the block hashes (128 bits)     96  zero (16 bytes)
// 112  hash of bytes 0..111 (128 bits)
//
// Version 1 has no block hashes (80..95 are zero): all its ids are one block, with the hash of the
// ids. Opening reads the header and the block hashes. A block is checked against its hash when an
// id of it is first asked for, so that every id that is used was checked without waiting for the
// others. Ids are checked against the vocabulary too, so no file, however broken, yields an id that
// a model has no row for.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/hash.h"
#include "core/mapped_file.h"

namespace fathom::data {

/// Ids are returned as signed 32-bit numbers, the type of device index buffers.
using TokenId = std::int32_t;

struct TokenFileInfo {
  std::uint64_t vocabulary = 0;
  std::uint64_t count = 0;
  std::uint64_t documents = 0;
  /// Bytes of text that the tokens stand for; end-of-document tokens stand for none.
  std::uint64_t text_bytes = 0;
  std::uint32_t bytes_per_id = 2;
  Hash128 content;
  Hash128 tokenizer;
};

class TokenFile {
 public:
  /// DataError when the header is not exactly that of a token file of this version and length.
  explicit TokenFile(const std::filesystem::path& path);

  const TokenFileInfo& info() const { return info_; }
  std::uint64_t size() const { return info_.count; }
  const std::string& name() const { return name_; }

  /// out[i] = id at start + i. InternalError past the end; DataError when a block they lie in is
  /// damaged (unless verification is off, core/checksum.h), and on an id >= vocabulary. From any
  /// thread.
  void copy(std::uint64_t start, std::span<TokenId> out) const;
  /// All ids as stored in the file, checked as by `copy`.
  std::span<const std::byte> ids() const;
  /// Reads everything and compares it with the content hash; DataError when they differ. Does
  /// nothing where verification is off.
  void verify() const;
  /// Bytes of ids that were hashed by `copy` and `ids` so far.
  std::uint64_t checked_bytes() const;

 private:
  std::span<const std::byte> body() const;
  std::span<const std::byte> block(std::size_t index) const;
  void check_blocks(std::uint64_t first_byte, std::uint64_t end_byte) const;

  std::string name_;
  MappedFile file_;
  TokenFileInfo info_;
  std::vector<std::uint64_t> block_hashes_;  // none: version 1, one block
  mutable std::vector<std::atomic<bool>> checked_;
};

/// Writes a token file front to back; it appears under its name at commit().
class TokenFileWriter {
 public:
  TokenFileWriter(const std::filesystem::path& path, std::uint64_t vocabulary, Hash128 tokenizer);

  /// InternalError on an id >= vocabulary.
  void add(std::span<const TokenId> ids);
  void count_text(std::uint64_t bytes) { info_.text_bytes += bytes; }
  void count_document() { ++info_.documents; }
  const TokenFileInfo& commit();
  const TokenFileInfo& info() const { return info_; }

 private:
  void hash(const void* data, std::size_t bytes);

  AtomicFile file_;
  Hasher hasher_;
  Hasher block_hasher_;
  std::size_t block_fill_ = 0;
  std::vector<std::uint64_t> block_hashes_;
  TokenFileInfo info_;
};

/// 2 bytes when every id below `vocabulary` fits, else 4.
std::uint32_t bytes_per_id(std::uint64_t vocabulary);

}  // namespace fathom::data
