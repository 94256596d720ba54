// Tokenizers of models made elsewhere.
//
//   tokenizer.json             the reference library's description: added tokens are cut out, the
//                              normaliser rewrites, the pre-tokeniser cuts, the model encodes
//   vocab.json + merges.txt    GPT-2's byte-level BPE
//   vocab.txt                  BERT's WordPiece
//   tokenizer.model            SentencePiece
//   GGUF's tokenizer.ggml.*    "llama" (SentencePiece pieces) and "gpt2" (byte-level BPE)
//
// text_start() and text_end() are what the files put around a text, such as <s> or [CLS], [SEP].
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/tokenizer.h"

namespace fathom::tokenizers {

/// The first of the above that the folder holds; DataError when it is damaged or there is none.
std::unique_ptr<data::Tokenizer> load_hf_tokenizer(const std::filesystem::path& folder);

/// `config` is tokenizer_config.json, or an empty object.
std::unique_ptr<data::Tokenizer> make_hf_tokenizer(const nlohmann::json& tokenizer,
                                                   const nlohmann::json& config,
                                                   const std::string& origin);
std::unique_ptr<data::Tokenizer> make_gguf_tokenizer(const nlohmann::json& keys,
                                                     const std::string& origin);

}  // namespace fathom::tokenizers
