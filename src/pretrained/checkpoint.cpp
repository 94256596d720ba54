#include "pretrained/checkpoint.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/json_text.h"
#include "tokenizers/hf_tokenizer.h"

namespace fathom::pretrained {

namespace fs = std::filesystem;

Checkpoint::Checkpoint() : config(std::make_unique<nlohmann::json>(nlohmann::json::object())) {}
Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;

bool is_checkpoint(const fs::path& path) {
  if (fs::is_directory(path)) return fs::exists(path / "config.json");
  return path.extension() == ".gguf" || path.extension() == ".bin";
}

Checkpoint open_checkpoint(const fs::path& path) {
  if (!fs::exists(path)) throw DataError(fmt::format("{}: no such file or folder", path.string()));
  if (path.extension() == ".gguf") return open_gguf(path);
  if (path.extension() == ".bin") return open_llama2c(path);
  if (!fs::is_directory(path) || !fs::exists(path / "config.json")) {
    throw DataError(fmt::format(
        "{}: holds no model; give a Hugging Face folder (config.json), a .gguf or a llama2.c .bin",
        path.string()));
  }
  Checkpoint checkpoint;
  checkpoint.origin = path.string();
  *checkpoint.config = read_json_file(path / "config.json");
  if (!checkpoint.config->is_object()) {
    throw DataError(fmt::format("{}: config.json is not an object", path.string()));
  }
  checkpoint.tensors = open_safetensors(path);
  try {
    checkpoint.tokenizer = tokenizers::load_hf_tokenizer(path);
  } catch (const Error& error) {
    checkpoint.tokenizer_note = error.what();
  }
  return checkpoint;
}

}  // namespace fathom::pretrained
