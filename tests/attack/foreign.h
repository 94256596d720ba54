// Models as other programs write them: files without checksums, which Fathom must read with care.
//
//   hub/            Hugging Face, sharded: config.json, tokenizer.json, index, one shard
//   model.gguf      GGUF version 3, f32, with its tokenizer
//   model.bin       llama2.c
#pragma once

#include <filesystem>

namespace fathom::attack {

/// One layer of width 8 with a vocabulary of single characters; the folder must exist.
void write_foreign_models(const std::filesystem::path& folder);

}  // namespace fathom::attack
