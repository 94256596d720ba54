#include "pretrained/config_keys.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"

namespace fathom::pretrained {
namespace {

using Json = nlohmann::json;

/// Keys about training, generation, files and other heads.
constexpr std::array kWithoutEffect{"architectures",
                                    "auto_map",
                                    "bad_words_ids",
                                    "cache_implementation",
                                    "chunk_size_feed_forward",
                                    "diversity_penalty",
                                    "do_sample",
                                    "dropout",
                                    "dtype",
                                    "early_stopping",
                                    "encoder_no_repeat_ngram_size",
                                    "finetuning_task",
                                    "full_attn_mod",
                                    "gradient_checkpointing",
                                    "id2label",
                                    "initializer_range",
                                    "init_std",
                                    "interpolate_factor",
                                    "is_llama_config",
                                    "keys_to_ignore_at_inference",
                                    "label2id",
                                    "layerdrop",
                                    "length_penalty",
                                    "max_length",
                                    "min_length",
                                    "model_type",
                                    "n_ctx",
                                    "name_or_path",
                                    "no_repeat_ngram_size",
                                    "num_beam_groups",
                                    "num_beams",
                                    "num_return_sequences",
                                    "pooler_fc_size",
                                    "pooler_num_attention_heads",
                                    "pooler_num_fc_layers",
                                    "pooler_size_per_head",
                                    "pooler_type",
                                    "prefix",
                                    "pretraining_tp",
                                    "problem_type",
                                    "reorder_and_upcast_attn",
                                    "repetition_penalty",
                                    "return_dict",
                                    "return_dict_in_generate",
                                    "task_specific_params",
                                    "temperature",
                                    "tokenizer_class",
                                    "top_k",
                                    "top_p",
                                    "torch_dtype",
                                    "torchscript",
                                    "transformers.js_config",
                                    "transformers_version",
                                    "typical_p",
                                    "use_bfloat16",
                                    "use_cache"};
constexpr std::array kEffectlessStarts{"_", "summary_", "output_", "directionality"};
constexpr std::array kEffectlessEnds{"_token_id", "_dropout", "_pdrop", "_dropout_prob"};

bool has_no_effect(const std::string& key) {
  for (const char* each : kWithoutEffect) {
    if (key == each) return true;
  }
  for (const char* each : kEffectlessStarts) {
    if (key.starts_with(each)) return true;
  }
  for (const char* each : kEffectlessEnds) {
    if (key.ends_with(each)) return true;
  }
  return false;
}

/// The value of a key that a model does not use.
bool says_nothing(const Json& value) {
  return value.is_null() || value == Json(false) ||
         ((value.is_object() || value.is_array()) && value.empty());
}

}  // namespace

void ConfigKeys::fail(std::string_view key, const std::string& what) const {
  throw ConfigError(
      fmt::format("{}: config.json: '{}' {}", origin_, printable(std::string(key)), what));
}

const Json* ConfigKeys::find(std::string_view key) const {
  asked_.emplace(key);
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

double ConfigKeys::number(std::string_view key, double fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) fail(key, "is not a number");
  return value->get<double>();
}

std::int64_t ConfigKeys::whole(std::string_view key, std::int64_t fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  if (!value->is_number_integer() || value->get<std::int64_t>() < 0 ||
      value->get<std::int64_t>() > kMost) {
    fail(key, "is not a whole number that fits");
  }
  return value->get<std::int64_t>();
}

std::int64_t ConfigKeys::size(std::string_view key) const {
  const std::int64_t value = whole(key, 0);
  if (value == 0) fail(key, "is missing or zero");
  return value;
}

bool ConfigKeys::flag(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "is neither true nor false");
  return value->get<bool>();
}

std::string ConfigKeys::text(std::string_view key, const std::string& fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) fail(key, "is not a text");
  return value->get<std::string>();
}

std::vector<double> ConfigKeys::numbers(std::string_view key) const {
  std::vector<double> list;
  const Json* value = find(key);
  if (value == nullptr || !value->is_array()) fail(key, "is not a list of numbers");
  for (const Json& each : *value) {
    if (!each.is_number()) fail(key, "is not a list of numbers");
    list.push_back(each.get<double>());
  }
  return list;
}

void ConfigKeys::refuse_unread() const {
  for (const auto& [key, value] : json_.items()) {
    if (asked_.contains(key) || has_no_effect(key) || says_nothing(value)) continue;
    fail(key,
         "is not known and may change what the model computes; if it does not, take it out of a "
         "copy of the file");
  }
}

}  // namespace fathom::pretrained
