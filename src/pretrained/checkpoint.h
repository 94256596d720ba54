// A trained model made elsewhere: its config, its tensors and its tokenizer.
//
//   FOLDER          Hugging Face: config.json, safetensors whole or sharded, tokenizer files
//   FILE.gguf       everything in one file
//   FILE.bin        llama2.c, version 0; the tokenizer is tokenizer.bin next to it
//
// Whatever the file, tensors have Hugging Face's names and the config its keys, so that one table
// of families (families.h) serves all.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/tokenizer.h"
#include "pretrained/tensor_source.h"

namespace fathom::pretrained {

struct Checkpoint {
  Checkpoint();
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;

  std::string origin;
  std::unique_ptr<nlohmann::json> config;
  std::unique_ptr<TensorSource> tensors;
  std::unique_ptr<data::Tokenizer> tokenizer;  // absent: tokenizer_note says why
  std::string tokenizer_note;
  bool gains_are_whole = false;  // (1 + w) norms store 1 + w already, as GGUF does
};

/// Whether the path looks like one of the above: a folder with config.json, or such a file.
bool is_checkpoint(const std::filesystem::path& path);
/// DataError, in one line, for files that are missing or damaged; ConfigError for what is not
/// known.
Checkpoint open_checkpoint(const std::filesystem::path& path);

// The readers behind it.
Checkpoint open_gguf(const std::filesystem::path& path);
Checkpoint open_llama2c(const std::filesystem::path& path);

}  // namespace fathom::pretrained
