// What both kinds of SentencePiece tokenizers share: the bytes of pieces and the files on disk.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace fathom::data {

/// How pieces write a space: U+2581.
inline constexpr std::string_view kBlankMark = "\xE2\x96\x81";

/// The bytes each id stands for: "" for control and unknown pieces, one byte for byte pieces, and
/// spaces for U+2581 otherwise.
std::vector<std::string> all_pieces(const sentencepiece::SentencePieceProcessor& model);

/// Writes tokenizer.model and the tokenizer.json that names it.
void save_sentencepiece(const std::filesystem::path& folder, const std::string& kind,
                        std::uint64_t vocabulary, const std::string& serialised);

}  // namespace fathom::data
