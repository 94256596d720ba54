#include "attack/foreign.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fathom::attack {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kWidth = 8, kFfn = 16, kVocab = 40, kContext = 32;

struct Tensor {
  std::string hf, gguf;
  std::vector<std::uint64_t> shape;  // outermost first

  std::uint64_t elements() const { return shape[0] * (shape.size() > 1 ? shape[1] : 1); }
};

/// In the order of llama2.c's files.
std::vector<Tensor> tensors() {
  const std::string layer = "model.layers.0.", block = "blk.0.";
  return {{"model.embed_tokens", "token_embd", {kVocab, kWidth}},
          {layer + "input_layernorm", block + "attn_norm", {kWidth}},
          {layer + "self_attn.q_proj", block + "attn_q", {kWidth, kWidth}},
          {layer + "self_attn.k_proj", block + "attn_k", {kWidth, kWidth}},
          {layer + "self_attn.v_proj", block + "attn_v", {kWidth, kWidth}},
          {layer + "self_attn.o_proj", block + "attn_output", {kWidth, kWidth}},
          {layer + "post_attention_layernorm", block + "ffn_norm", {kWidth}},
          {layer + "mlp.gate_proj", block + "ffn_gate", {kFfn, kWidth}},
          {layer + "mlp.down_proj", block + "ffn_down", {kWidth, kFfn}},
          {layer + "mlp.up_proj", block + "ffn_up", {kFfn, kWidth}},
          {"model.norm", "output_norm", {kWidth}}};
}

/// Any smooth values do: nothing is learned here.
std::string data_of(const Tensor& tensor) {
  std::vector<float> values(tensor.elements());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor.shape.size() == 1 ? 1.0F : 0.3F * std::sin(static_cast<float>(7 * i + 1));
  }
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

template <class Number>
std::string raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Special tokens, the blank as the format writes it, letters and pairs of letters.
std::vector<std::string> pieces(const std::string& blank) {
  std::vector<std::string> list{"<unk>", "<s>", "</s>", blank};
  for (char letter = 'a'; letter <= 'z'; ++letter) list.emplace_back(1, letter);
  for (const char* pair : {"th", "he", "in", "er", "an", "re", "on", "at", "en", "nd"}) {
    list.emplace_back(pair);
  }
  return list;
}

bool is_pair(const std::string& piece) {
  return piece.size() == 2 && piece[0] >= 'a' && piece[0] <= 'z';
}

void write_hub(const fs::path& folder) {
  fs::create_directories(folder);
  const Json config{{"model_type", "llama"},      {"hidden_size", kWidth},
                    {"num_hidden_layers", 1},     {"num_attention_heads", 2},
                    {"num_key_value_heads", 2},   {"intermediate_size", kFfn},
                    {"vocab_size", kVocab},       {"max_position_embeddings", kContext},
                    {"rms_norm_eps", 1e-5},       {"rope_theta", 10000.0},
                    {"tie_word_embeddings", true}};
  write(folder / "config.json", config.dump(1));
  Json header, index, vocabulary, merges = Json::array();
  std::string data;
  for (const Tensor& tensor : tensors()) {
    const std::string name = tensor.hf + ".weight", bytes = data_of(tensor);
    header[name] = {{"dtype", "F32"},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    index["weight_map"][name] = "model-00001-of-00001.safetensors";
    data += bytes;
  }
  index["metadata"]["total_size"] = data.size();
  const std::string text = header.dump();
  write(folder / "model-00001-of-00001.safetensors",
        raw(static_cast<std::uint64_t>(text.size())) + text + data);
  write(folder / "model.safetensors.index.json", index.dump(1));
  for (const std::string& piece : pieces("\u2581")) {
    vocabulary[piece] = vocabulary.size();
    if (is_pair(piece)) merges.push_back(piece.substr(0, 1) + " " + piece.substr(1));
  }
  const Json added{{"id", 1},         {"content", "<s>"}, {"single_word", false}, {"lstrip", false},
                   {"rstrip", false}, {"special", true},  {"normalized", false}};
  const Json tokenizer{
      {"version", "1.0"},
      {"added_tokens", Json::array({added})},
      {"normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", " +"}}}, {"content", "\u2581"}}},
      {"pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"Regex", "\u2581?[a-z]+"}}}, {"behavior", "Isolated"}}},
      {"model",
       {{"type", "BPE"}, {"unk_token", "<unk>"}, {"vocab", vocabulary}, {"merges", merges}}}};
  write(folder / "tokenizer.json", tokenizer.dump(1));
}

/// Keys, types and values as GGUF writes them.
class GgufKeys {
 public:
  void text(const std::string& name, const std::string& value) {
    begin(name, 8);
    bytes_ += text_of(value);
  }
  void whole(const std::string& name, std::uint32_t value) {
    begin(name, 4);
    bytes_ += raw(value);
  }
  void real(const std::string& name, float value) {
    begin(name, 6);
    bytes_ += raw(value);
  }
  void list(const std::string& name, std::uint32_t type, const std::vector<std::string>& values) {
    begin(name, 9);
    bytes_ += raw(type) + raw(static_cast<std::uint64_t>(values.size()));
    for (const std::string& value : values) bytes_ += value;
  }
  static std::string text_of(const std::string& value) {
    return raw(static_cast<std::uint64_t>(value.size())) + value;
  }
  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(const std::string& name, std::uint32_t type) {
    ++count_;
    bytes_ += text_of(name) + raw(type);
  }
  std::string bytes_;
  std::uint64_t count_ = 0;
};

void write_gguf(const fs::path& path) {
  GgufKeys keys;
  keys.text("general.architecture", "llama");
  keys.whole("llama.embedding_length", kWidth);
  keys.whole("llama.block_count", 1);
  keys.whole("llama.feed_forward_length", kFfn);
  keys.whole("llama.attention.head_count", 2);
  keys.whole("llama.attention.head_count_kv", 2);
  keys.whole("llama.context_length", kContext);
  keys.real("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  keys.text("tokenizer.ggml.model", "gpt2");
  keys.text("tokenizer.ggml.pre", "gpt-2");
  std::vector<std::string> texts, kinds, merges;
  for (const std::string& piece : pieces("\u0120")) {
    texts.push_back(GgufKeys::text_of(piece));
    kinds.push_back(raw(static_cast<std::int32_t>(kinds.size() < 3 ? 3 : 1)));
    if (is_pair(piece)) {
      merges.push_back(GgufKeys::text_of(piece.substr(0, 1) + " " + piece.substr(1)));
    }
  }
  keys.list("tokenizer.ggml.tokens", 8, texts);
  keys.list("tokenizer.ggml.token_type", 5, kinds);
  keys.list("tokenizer.ggml.merges", 8, merges);
  keys.whole("tokenizer.ggml.bos_token_id", 1);
  keys.whole("tokenizer.ggml.eos_token_id", 2);
  std::string table, data;
  for (const Tensor& tensor : tensors()) {
    table += GgufKeys::text_of(tensor.gguf + ".weight");
    table += raw(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      table += raw(*size);
    table += raw(std::uint32_t{0}) + raw(static_cast<std::uint64_t>(data.size()));
    data += data_of(tensor);
    data.resize((data.size() + 31) / 32 * 32);
  }
  std::string head = "GGUF" + raw(std::uint32_t{3}) +
                     raw(static_cast<std::uint64_t>(tensors().size())) + raw(keys.count()) +
                     keys.bytes() + table;
  head.resize((head.size() + 31) / 32 * 32);
  write(path, head + data);
}

void write_llama2c(const fs::path& path) {
  std::string bytes;
  for (const std::uint64_t number :
       {kWidth, kFfn, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{2}, kVocab, kContext}) {
    bytes += raw(static_cast<std::int32_t>(number));
  }
  for (const Tensor& tensor : tensors()) bytes += data_of(tensor);
  bytes += std::string(kContext * kWidth / 2 * sizeof(float), '\0');  // cosines and sines
  write(path, bytes);
}

}  // namespace

void write_foreign_models(const fs::path& folder) {
  write_hub(folder / "hub");
  write_gguf(folder / "model.gguf");
  write_llama2c(folder / "model.bin");
}

}  // namespace fathom::attack
