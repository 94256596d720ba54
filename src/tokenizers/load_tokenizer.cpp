// Tokenizers by the files of a Hugging Face folder and by the keys of a GGUF file.
#include <fmt/format.h>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "core/text.h"
#include "tokenizers/hf_tokenizer.h"
#include "tokenizers/sentencepiece_model.h"

namespace fathom::tokenizers {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json read_if_there(const fs::path& path) {
  if (!fs::exists(path)) return Json::object();
  Json json = read_json_file(path);
  return json.is_object() ? json : Json::object();
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines = split(read_text_file(path), '\n');
  for (std::string& line : lines) {
    if (line.ends_with('\r')) line.pop_back();
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

Json added(const std::string& content, const Json& id) {
  return {{"content", content}, {"id", id}, {"special", true}, {"normalized", false}};
}

/// GPT-2's two files as a tokenizer.json.
Json from_merges(const fs::path& folder) {
  const Json vocabulary = read_json_file(folder / "vocab.json");
  Json merges = Json::array();
  for (const std::string& line : lines_of(folder / "merges.txt")) {
    if (!line.starts_with("#version") && !line.empty()) merges.push_back(line);
  }
  Json tokens = Json::array();
  for (const char* name :
       {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>"}) {
    if (vocabulary.is_object() && vocabulary.contains(name)) {
      tokens.push_back(added(name, vocabulary.at(name)));
    }
  }
  return {{"added_tokens", tokens},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"post_processor", nullptr},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

/// BERT's list of words, one a line, as a tokenizer.json.
Json from_words(const fs::path& folder, const Json& config) {
  Json vocabulary = Json::object();
  std::size_t id = 0;
  for (const std::string& line : lines_of(folder / "vocab.txt")) vocabulary[line] = id++;
  Json tokens = Json::array();
  for (const char* name : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (vocabulary.contains(name)) tokens.push_back(added(name, vocabulary.at(name)));
  }
  Json processor;
  if (vocabulary.contains("[CLS]") && vocabulary.contains("[SEP]")) {
    processor = {{"type", "BertProcessing"},
                 {"sep", {"[SEP]", vocabulary.at("[SEP]")}},
                 {"cls", {"[CLS]", vocabulary.at("[CLS]")}}};
  }
  return {{"added_tokens", tokens},
          {"normalizer",
           {{"type", "BertNormalizer"}, {"lowercase", config.value("do_lower_case", true)}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", processor},
          {"model", {{"type", "WordPiece"}, {"vocab", vocabulary}}}};
}

// ---- GGUF

template <class T>
std::vector<T> list_at(const Json& keys, const std::string& key, const std::string& origin) {
  const auto found = keys.find(key);
  if (found == keys.end() || !found->is_array()) {
    throw DataError(fmt::format("{}: lacks {}", origin, key));
  }
  return found->get<std::vector<T>>();
}

std::unique_ptr<data::Tokenizer> gguf_pieces(const Json& keys, const std::string& origin) {
  const auto tokens = list_at<std::string>(keys, "tokenizer.ggml.tokens", origin);
  const auto scores = list_at<float>(keys, "tokenizer.ggml.scores", origin);
  const auto types = list_at<int>(keys, "tokenizer.ggml.token_type", origin);
  if (scores.size() != tokens.size() || types.size() != tokens.size()) {
    throw DataError(fmt::format("{}: the tokenizer's lists differ in length", origin));
  }
  std::vector<SentencePiece> pieces;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    pieces.push_back({tokens[i], scores[i], piece_kind(types[i], origin)});
  }
  PieceOptions options;
  options.start = keys.value("tokenizer.ggml.bos_token_id", 1);
  options.end = keys.value("tokenizer.ggml.eos_token_id", 2);
  options.starts_text = keys.value("tokenizer.ggml.add_bos_token", true);
  options.blank_in_front = keys.value("tokenizer.ggml.add_space_prefix", true);
  return make_piece_tokenizer(pieces, options, origin);
}

/// The pre-tokeniser's pattern by the name that converters write.
const char* gguf_pattern(const std::string& name, const std::string& origin) {
  if (name == "gpt-2" || name == "default") return nullptr;  // ByteLevel's own
  if (name == "llama-bpe" || name == "llama3") {
    return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  if (name == "qwen2") {
    return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  throw DataError(fmt::format("{}: the pre-tokenizer '{}' is not known", origin, printable(name)));
}

std::unique_ptr<data::Tokenizer> gguf_byte_level(const Json& keys, const std::string& origin) {
  const auto tokens = list_at<std::string>(keys, "tokenizer.ggml.tokens", origin);
  const auto types = list_at<int>(keys, "tokenizer.ggml.token_type", origin);
  Json vocabulary = Json::object(), special = Json::array();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    vocabulary[tokens[i]] = i;
    const bool control = i < types.size() && types[i] == 3,
               user = i < types.size() && types[i] == 4;
    if (!control && !user) continue;
    special.push_back(added(tokens[i], i));
    special.back()["special"] = control;
  }
  const std::string name = keys.value("tokenizer.ggml.pre", std::string("default"));
  const char* pattern = gguf_pattern(name, origin);
  Json steps = Json::array();
  if (pattern != nullptr) {
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}});
  }
  steps.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", pattern == nullptr}});
  const auto token = [&](const char* key) {
    const auto id = keys.value(key, std::uint64_t{tokens.size()});
    return id < tokens.size() ? tokens[id] : std::string();
  };
  const Json config{{"bos_token", token("tokenizer.ggml.bos_token_id")},
                    {"eos_token", token("tokenizer.ggml.eos_token_id")},
                    {"add_bos_token", keys.value("tokenizer.ggml.add_bos_token", name != "qwen2")}};
  return make_hf_tokenizer({{"added_tokens", special},
                            {"normalizer", nullptr},
                            {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
                            {"post_processor", nullptr},
                            {"model",
                             {{"type", "BPE"},
                              {"vocab", vocabulary},
                              {"merges", keys.value("tokenizer.ggml.merges", Json::array())},
                              {"ignore_merges", name == "llama-bpe"}}}},
                           config, origin);
}

}  // namespace

std::unique_ptr<data::Tokenizer> load_hf_tokenizer(const fs::path& folder) {
  const Json config = read_if_there(folder / "tokenizer_config.json");
  const auto named = [&](const char* name) { return (folder / name).string(); };
  if (fs::exists(folder / "tokenizer.json")) {
    return make_hf_tokenizer(read_json_file(folder / "tokenizer.json"), config,
                             named("tokenizer.json"));
  }
  if (fs::exists(folder / "vocab.json") && fs::exists(folder / "merges.txt")) {
    return make_hf_tokenizer(from_merges(folder), config, named("vocab.json"));
  }
  if (fs::exists(folder / "vocab.txt")) {
    return make_hf_tokenizer(from_words(folder, config), config, named("vocab.txt"));
  }
  if (fs::exists(folder / "tokenizer.model")) {
    const auto starts = config.find("add_bos_token");
    return data::make_foreign_tokenizer(read_text_file(folder / "tokenizer.model"),
                                        named("tokenizer.model"),
                                        starts == config.end() || *starts != Json(false));
  }
  throw DataError(
      fmt::format("{}: holds no tokenizer (tokenizer.json, vocab.json with merges.txt, "
                  "vocab.txt or tokenizer.model)",
                  folder.string()));
}

std::unique_ptr<data::Tokenizer> make_gguf_tokenizer(const Json& keys, const std::string& origin) {
  const std::string model = keys.value("tokenizer.ggml.model", std::string());
  try {
    if (model == "llama") return gguf_pieces(keys, origin);
    if (model == "gpt2") return gguf_byte_level(keys, origin);
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: its tokenizer is damaged ({})", origin, json_problem(error)));
  }
  throw DataError(fmt::format("{}: the tokenizer '{}' is not known", origin, printable(model)));
}

}  // namespace fathom::tokenizers
