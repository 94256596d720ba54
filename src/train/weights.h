// A trained model on disk, wherever it came from: its spec, its weights, its tokenizer.
//
//   a run's folder     spec.toml and checkpoint/state.safetensors; tokenizer of the corpus it read
//   a model folder     model.toml and model.safetensors in Fathom's names, perhaps a tokenizer
//   Hugging Face       config.json and safetensors, whole or sharded, perhaps a tokenizer.model
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/token_set.h"
#include "data/tokenizer.h"
#include "model/hf_layout.h"
#include "model/model_spec.h"

namespace fathom::train {

struct Weights {
  model::ModelSpec spec;
  model::ParameterValues parameters;
  std::unique_ptr<data::Tokenizer> tokenizer;  // absent when none was found
  std::string tokenizer_note;                  // why it is absent

  std::int64_t parameter_count() const;
};

/// DataError when the folder is none of the three, or is broken.
Weights load_weights(const std::filesystem::path& folder);

/// Writes a model folder; the files appear whole, model.toml last.
void save_weights(const Weights& weights, const std::filesystem::path& folder);

/// Writes a folder that transformers opens. Fathom's own tokenizer files are in a separate folder
/// next to it: its tokenizer.json is not the one transformers expects.
void export_weights(const Weights& weights, model::HfFormat format,
                    const std::filesystem::path& folder);

struct WeightsEvaluation {
  double loss = 0;           // mean nats per token
  double bits_per_byte = 0;  // of text
  std::uint64_t tokens = 0;
};

/// Loss of a split, over at most `limit_tokens` evenly spread tokens. ConfigError when the model's
/// vocabulary is smaller than the corpus's.
WeightsEvaluation evaluate_weights(const Weights& weights, const data::TokenSet& tokens,
                                   data::Split split, std::uint64_t limit_tokens, int threads);

struct GenerationOptions {
  std::int64_t tokens = 200;
  double temperature = 0.8;  // 0: always the likeliest token
  std::int64_t top_k = 0;    // 0: all
  std::uint64_t seed = 1;
  int threads = 1;
};

/// ConfigError, naming the option.
void validate(const GenerationOptions& options);

/// Draws an index from softmax(logits / temperature) among the top k; u is uniform in [0, 1).
data::TokenId sample_token(std::span<const float> logits, const GenerationOptions& options,
                           double u);

/// Continues `prompt`; calls `emit` with every new token. Token n is a pure function of weights,
/// prompt and options. ConfigError for models that see the future.
void generate(const Weights& weights, std::vector<data::TokenId> prompt,
              const GenerationOptions& options, const std::function<void(data::TokenId)>& emit);

/// The same on text: an empty prompt is the start of a document. Calls `emit` with the bytes of
/// every new token; a token beyond the tokenizer (padding rows of some checkpoints) has none.
/// DataError when the model has no tokenizer.
void generate_text(const Weights& weights, const std::string& prompt,
                   const GenerationOptions& options,
                   const std::function<void(std::string_view)>& emit);

}  // namespace fathom::train
