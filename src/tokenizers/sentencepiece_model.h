// A list of pieces with scores, as llama2.c and GGUF keep it, as a SentencePiece model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace fathom::tokenizers {

/// Numbers as in SentencePiece's and GGUF's files.
enum class PieceKind : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user = 4,
  unused = 5,
  byte = 6
};
/// DataError for a number without a meaning.
PieceKind piece_kind(int number, const std::string& origin);

struct SentencePiece {
  std::string text;  // spaces as such or as U+2581
  float score = 0;
  PieceKind kind = PieceKind::normal;
};

struct PieceOptions {
  int start = 1, end = 2;      // ids of <s> and </s>
  bool starts_text = true;     // <s> is put before every text
  bool blank_in_front = true;  // a space is put before the text
};

/// The model's protobuf: BPE with byte fallback, no normalisation.
std::string serialise_pieces(const std::vector<SentencePiece>& pieces, const PieceOptions& options);
std::unique_ptr<data::Tokenizer> make_piece_tokenizer(const std::vector<SentencePiece>& pieces,
                                                      const PieceOptions& options,
                                                      const std::string& origin);

}  // namespace fathom::tokenizers
