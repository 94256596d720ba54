#include "tokenizers/sentencepiece_model.h"

#include <fmt/format.h>

#include <cstring>

#include "core/error.h"
#include "core/utf8.h"
#include "tokenizers/steps.h"

namespace fathom::tokenizers {
namespace {

// Protocol buffers: a field is a key (number << 3 | wire type) and a value.

void put_varint(std::string& out, std::uint64_t value) {
  for (; value > 127; value >>= 7) out += static_cast<char>((value & 127) | 128);
  out += static_cast<char>(value);
}
void put_number(std::string& out, unsigned field, std::int64_t value) {
  put_varint(out, field << 3);
  put_varint(out, static_cast<std::uint64_t>(value));
}
void put_float(std::string& out, unsigned field, float value) {
  put_varint(out, field << 3 | 5);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof value);
}
void put_bytes(std::string& out, unsigned field, const std::string& value) {
  put_varint(out, field << 3 | 2);
  put_varint(out, value.size());
  out += value;
}

std::string with_marks(const std::string& text) {
  std::string marked;
  for (const char c : text) {
    if (c == ' ') {
      marked += kBlankMark;
    } else {
      marked += c;
    }
  }
  return replace_invalid_utf8(marked);
}

}  // namespace

PieceKind piece_kind(int number, const std::string& origin) {
  if (number < 1 || number > 6) {
    throw DataError(fmt::format("{}: a token of type {}", origin, number));
  }
  return static_cast<PieceKind>(number);
}

std::string serialise_pieces(const std::vector<SentencePiece>& pieces,
                             const PieceOptions& options) {
  std::string model;
  for (const SentencePiece& piece : pieces) {
    std::string entry;
    put_bytes(entry, 1, with_marks(piece.text));
    put_float(entry, 2, piece.score);
    put_number(entry, 3, static_cast<int>(piece.kind));
    put_bytes(model, 1, entry);
  }
  int unknown = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].kind == PieceKind::unknown) unknown = static_cast<int>(i);
  }
  std::string trainer;
  put_number(trainer, 3, 2);  // BPE
  put_number(trainer, 4, static_cast<std::int64_t>(pieces.size()));
  put_number(trainer, 35, 1);  // byte fallback
  put_number(trainer, 40, unknown);
  put_number(trainer, 41, options.start);
  put_number(trainer, 42, options.end);
  put_number(trainer, 43, -1);  // no padding piece
  put_bytes(model, 2, trainer);
  std::string normaliser;
  put_bytes(normaliser, 1, "identity");
  put_number(normaliser, 3, options.blank_in_front ? 1 : 0);
  put_number(normaliser, 4, 0);  // runs of spaces are kept
  put_number(normaliser, 5, 1);  // spaces are written as U+2581
  put_bytes(model, 3, normaliser);
  return model;
}

std::unique_ptr<data::Tokenizer> make_piece_tokenizer(const std::vector<SentencePiece>& pieces,
                                                      const PieceOptions& options,
                                                      const std::string& origin) {
  return data::make_foreign_tokenizer(serialise_pieces(pieces, options), origin,
                                      options.starts_text);
}

}  // namespace fathom::tokenizers
