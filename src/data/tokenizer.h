// Tokenizers: text to ids and back, exactly.
//
//   bytes   id = byte; vocabulary 257
//   chars   id = rank of the Unicode character among those of the corpus; vocabulary = their number
//           + 1
//   bpe     SentencePiece BPE with byte fallback; vocabulary as requested, including 3 control
//           and 256 byte pieces
//   sentencepiece   a SentencePiece model made elsewhere, used as it is; only by import
//
// Each id stands for a fixed string of bytes, so decode() is concatenation and
// decode(encode(text)) == text for every text that encode() accepts; a model made elsewhere may
// normalise text and says so in foreign_tokenizer.cpp. One id, end_of_document(), stands for no
// bytes. The hash covers kind, ids and bytes of all tokens, not the model file (which also records
// how it was trained).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "data/token_file.h"

namespace fathom::data {

/// Encodes on one thread; may keep a cache. The tokenizer must outlive it.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Appends the ids of `text`. DataError, with the byte offset, when the tokenizer cannot express
  /// it: text that is not UTF-8 (chars, bpe) or a character outside the alphabet (chars).
  virtual void encode(std::string_view text, std::vector<TokenId>& ids) = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  const std::string& kind() const { return kind_; }
  std::uint64_t vocabulary() const { return tokens_.size(); }
  TokenId end_of_document() const { return end_of_document_; }
  /// Ids that a model made elsewhere was trained to see before and after every text; encode() does
  /// not add them.
  virtual std::vector<TokenId> text_start() const { return {}; }
  virtual std::vector<TokenId> text_end() const { return {}; }
  /// The bytes an id stands for; InternalError outside the vocabulary.
  const std::string& bytes_of(TokenId id) const;
  /// Length of bytes_of(id) for every id, for bits per byte.
  std::vector<std::uint32_t> token_bytes() const;
  Hash128 hash() const { return hash_; }

  virtual std::unique_ptr<Encoder> encoder() const = 0;
  std::vector<TokenId> encode(std::string_view text) const;
  virtual std::string decode(std::span<const TokenId> ids) const;

  /// Writes tokenizer.json (and tokenizer.model for bpe) into the folder.
  virtual void save(const std::filesystem::path& folder) const = 0;

 protected:
  Tokenizer(std::string kind, std::vector<std::string> tokens, TokenId end_of_document);

 private:
  std::string kind_;
  std::vector<std::string> tokens_;
  TokenId end_of_document_;
  Hash128 hash_;
};

std::unique_ptr<Tokenizer> make_byte_tokenizer();
/// `alphabet` in increasing order, without repetition.
std::unique_ptr<Tokenizer> make_char_tokenizer(const std::vector<std::uint32_t>& alphabet);
/// A SentencePiece model as serialised protobuf; DataError when it cannot round-trip.
std::unique_ptr<Tokenizer> make_bpe_tokenizer(std::string model, const std::string& origin);
/// Any SentencePiece model with an end-of-sentence piece, with the flags it was trained with:
/// decode(encode(text)) is the text as the model's own normaliser leaves it.
/// `starts_text`: its beginning-of-sentence piece, where it has one, is put before every text.
std::unique_ptr<Tokenizer> make_foreign_tokenizer(std::string model, const std::string& origin,
                                                  bool starts_text = true);
/// The exact kind where the model allows it, otherwise the foreign one.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string model,
                                                        const std::string& origin);
/// Reads what save() wrote; DataError when it is missing, malformed or damaged.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder);

}  // namespace fathom::data
