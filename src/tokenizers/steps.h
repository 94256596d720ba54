// The steps of a tokenizer.json before its model: normalisers rewrite the text, pre-tokenisers cut
// it into pieces that the model sees one by one.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace fathom::tokenizers {

using Normaliser = std::function<std::string(std::string)>;

/// A piece of text; `first`: it begins the whole text.
struct Piece {
  std::string text;
  bool first = false;
};
using PreTokeniser = std::function<void(std::vector<Piece>&)>;

/// null gives a step that does nothing. DataError for a kind that is not known, by its name.
Normaliser make_normaliser(const nlohmann::json& spec, const std::string& origin);
PreTokeniser make_pre_tokeniser(const nlohmann::json& spec, const std::string& origin);

/// Byte-level tokenizers write each byte as one printable character: this is its UTF-8.
const std::string& byte_character(unsigned char byte);
/// The bytes such a text stands for; characters outside the alphabet stay as they are.
std::string bytes_of_characters(std::string_view text);

inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kBlankMark = "\xE2\x96\x81";  // SentencePiece's space

}  // namespace fathom::tokenizers
