// The models of tokenizer.json: a piece of text to ids.
//
//   BPE        start from characters, merge the pair of lowest rank, leftmost first
//   WordPiece  the longest known beginning, then the longest known continuation
//   Unigram    the segmentation of largest summed score
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/token_file.h"

namespace fathom::tokenizers {

using data::TokenId;
using Vocabulary = std::unordered_map<std::string, TokenId>;

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  virtual void encode(std::string_view piece, std::vector<TokenId>& ids) const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit PieceModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  std::optional<TokenId> find(const std::string& token) const;
  /// The ids of all bytes as "<0x0A>" tokens; nothing when one of them is missing.
  bool append_bytes(std::string_view bytes, std::vector<TokenId>& ids) const;

 private:
  Vocabulary vocabulary_;
};

struct BpeOptions {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // best first
  std::optional<std::string> unknown;
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool whole_piece_first = false;  // "ignore_merges"
  std::string continuing_prefix, word_suffix;
};
std::unique_ptr<PieceModel> make_bpe(BpeOptions options, const std::string& origin);
std::unique_ptr<PieceModel> make_word_piece(Vocabulary vocabulary, const std::string& unknown,
                                            const std::string& continuing_prefix,
                                            std::size_t longest_word, const std::string& origin);

struct UnigramPiece {
  std::string text;
  double score;
};
std::unique_ptr<PieceModel> make_unigram(const std::vector<UnigramPiece>& pieces,
                                         std::optional<std::size_t> unknown, bool byte_fallback);

/// The "model" of a tokenizer.json; DataError for a kind that is not known.
std::unique_ptr<PieceModel> make_piece_model(const nlohmann::json& spec, const std::string& origin);

}  // namespace fathom::tokenizers
