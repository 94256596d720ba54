// Token files: one split of a corpus as fixed-width token ids, read through memory mapping.
//
// Layout, little-endian: a header of 128 bytes, then `count` ids of 2 or 4 bytes, nothing else.
//
//   0  "FATHOMTK"      8  version (u32, 1)     12  bytes per id (u32, 2 or 4)
//  16  vocabulary     24  count                32  documents      40  bytes of text   (u64 each)
//  48  hash of the ids (128 bits)              64  hash of the tokenizer (128 bits)
//  80  zero (32 bytes)                        112  hash of bytes 0..111 (128 bits)
//
// Opening reads the header only; verify() reads all, once, where a process begins to train on or to
// evaluate with the file. Ids are checked against the vocabulary as they are copied, so no
// file, however broken, yields an id that a model has no row for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/atomic_file.h"
#include "core/hash.h"
#include "core/mapped_file.h"

namespace fathom::data {

/// Ids are handed out as signed 32-bit numbers, the type of device index buffers.
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

  /// out[i] = id at start + i. InternalError past the end, DataError on an id >= vocabulary.
  void copy(std::uint64_t start, std::span<TokenId> out) const;
  /// All ids as they lie in the file, checked: DataError on an id >= vocabulary.
  std::span<const std::byte> ids() const;
  /// Reads everything and compares it with the content hash; DataError when they differ. Does
  /// nothing where verification is off (core/checksum.h).
  void verify() const;

 private:
  std::string name_;
  MappedFile file_;
  TokenFileInfo info_;
};

/// Writes a token file front to back; it appears under its name at commit().
class TokenFileWriter {
 public:
  TokenFileWriter(std::filesystem::path path, std::uint64_t vocabulary, Hash128 tokenizer);

  /// InternalError on an id >= vocabulary.
  void add(std::span<const TokenId> ids);
  void count_text(std::uint64_t bytes) { info_.text_bytes += bytes; }
  void count_document() { ++info_.documents; }
  const TokenFileInfo& commit();
  const TokenFileInfo& info() const { return info_; }

 private:
  AtomicFile file_;
  Hasher hasher_;
  TokenFileInfo info_;
};

/// 2 bytes when every id below `vocabulary` fits, else 4.
std::uint32_t bytes_per_id(std::uint64_t vocabulary);

}  // namespace fathom::data
