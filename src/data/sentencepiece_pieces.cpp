#include "data/sentencepiece_pieces.h"

#include <sentencepiece_processor.h>

#include <charconv>

#include "core/files.h"
#include "core/hash.h"
#include "core/json_file.h"
#include "core/json_text.h"

namespace fathom::data {
namespace {

std::string piece_bytes(const sentencepiece::SentencePieceProcessor& model, int id) {
  const std::string& piece = model.IdToPiece(id);
  if (model.IsControl(id) || model.IsUnknown(id) || model.IsUnused(id)) return "";
  if (model.IsByte(id)) {  // "<0x0A>"
    unsigned value = 0;
    if (piece.size() == 6) std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
    return std::string(1, static_cast<char>(value));
  }
  std::string bytes;
  for (std::size_t at = 0; at < piece.size();) {
    const bool blank = std::string_view(piece).substr(at).starts_with(kBlankMark);
    bytes += blank ? ' ' : piece[at];
    at += blank ? kBlankMark.size() : 1;
  }
  return bytes;
}

}  // namespace

std::vector<std::string> all_pieces(const sentencepiece::SentencePieceProcessor& model) {
  std::vector<std::string> tokens;
  for (int id = 0; id < model.GetPieceSize(); ++id) tokens.push_back(piece_bytes(model, id));
  return tokens;
}

void save_sentencepiece(const std::filesystem::path& folder, const std::string& kind,
                        std::uint64_t vocabulary, const std::string& serialised) {
  const nlohmann::ordered_json document{{"schema", "fathom.tokenizer.v1"},
                                        {"kind", kind},
                                        {"vocabulary", vocabulary},
                                        {"model", "tokenizer.model"},
                                        {"model_hash", hash_bytes(serialised).hex()}};
  write_file_atomically(folder / "tokenizer.model", serialised);
  write_file_atomically(folder / "tokenizer.json", json_file_text(document));
}

}  // namespace fathom::data
