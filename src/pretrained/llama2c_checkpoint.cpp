// llama2.c files (version 0): seven integers, then f32 weights in a fixed order.
//
//   width, ffn, layers, heads, key heads, vocabulary (negative: head of its own), context; token
//   table, attention norms of all layers, q, k, v, o of all layers, feed-forward norms, w1 (gate),
//   w2 (down), w3 (up), final norm, two rotary tables, the head if it is not the token table.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/mapped_file.h"
#include "pretrained/checkpoint.h"
#include "tokenizers/sentencepiece_model.h"

namespace fathom::pretrained {
namespace {

namespace fs = std::filesystem;

struct Header {
  std::int32_t width, ffn, layers, heads, key_heads, vocabulary, context;
};

Header read_header(const MappedFile& file, const std::string& origin) {
  Header h{};
  if (file.bytes().size() < sizeof(h)) {
    throw DataError(fmt::format("{}: too short for a llama2.c model", origin));
  }
  std::memcpy(&h, file.bytes().data(), sizeof(h));
  constexpr std::int32_t kMost = 1 << 20;
  const auto sane = [](std::int32_t n) { return n > 0 && n <= kMost; };
  if (!sane(h.width) || !sane(h.ffn) || !sane(h.layers) || !sane(h.heads) || !sane(h.key_heads) ||
      !sane(std::abs(h.vocabulary)) || !sane(h.context) || h.width % h.heads != 0 ||
      h.heads % h.key_heads != 0 || h.layers > 10000) {
    throw DataError(
        fmt::format("{}: not a llama2.c model (version 0); other .bin files, such as "
                    "PyTorch's, are not read",
                    origin));
  }
  return h;
}

class Llama2cSource : public TensorSource {
 public:
  Llama2cSource(const fs::path& path, const std::string& origin)
      : file_(path), header_(read_header(file_, origin)) {
    const Header& h = header_;
    const std::uint64_t D = as_size(h.width), F = as_size(h.ffn),
                        V = as_size(std::abs(h.vocabulary)), size = D / as_size(h.heads),
                        G = as_size(h.key_heads) * size;
    // Checked before thousands of tensors are named: the header may claim any number of layers.
    const std::uint64_t layer = 2 * D + 2 * D * D + 2 * G * D + 3 * F * D,
                        tables = (h.vocabulary < 0 ? 2 : 1) * V * D,
                        numbers =
                            tables + as_size(h.layers) * layer + D + as_size(h.context) * size,
                        expected = sizeof(Header) + numbers * sizeof(float);
    if (expected != file_.bytes().size()) {
      throw DataError(fmt::format("{}: {} bytes where a llama2.c model of these sizes has {}",
                                  origin, file_.bytes().size(), expected));
    }
    add("model.embed_tokens.weight", {V, D});
    per_layer("input_layernorm", {D});
    per_layer("self_attn.q_proj", {D, D});
    per_layer("self_attn.k_proj", {G, D});
    per_layer("self_attn.v_proj", {G, D});
    per_layer("self_attn.o_proj", {D, D});
    per_layer("post_attention_layernorm", {D});
    per_layer("mlp.gate_proj", {F, D});
    per_layer("mlp.down_proj", {D, F});
    per_layer("mlp.up_proj", {F, D});
    add("model.norm.weight", {D});
    next_ += as_size(h.context) * size * sizeof(float);  // cosines and sines
    if (h.vocabulary < 0) add("lm_head.weight", {V, D});
  }

  const Header& header() const { return header_; }
  std::vector<std::string> names() const override {
    std::vector<std::string> list;
    for (const auto& [name, place] : places_) list.push_back(name);
    return list;
  }
  const TensorShape* find(const std::string& name) const override {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second.shape;
  }
  void read(const std::string& name, std::span<float> out) const override {
    const Place& place = places_.at(name);
    const auto stored = file_.bytes().subspan(place.offset, out.size_bytes());
    std::memcpy(out.data(), stored.data(), stored.size());
    release_pages(stored);
    const bool query = name.find("q_proj") != name.npos, key = name.find("k_proj") != name.npos;
    if (query || key) {
      pairs_to_halves(out, place.shape.front(), as_size(query ? header_.heads : header_.key_heads));
    }
  }

 private:
  struct Place {
    TensorShape shape;
    std::size_t offset;
  };
  void add(const std::string& name, TensorShape shape) {
    std::size_t count = 1;
    for (const std::uint64_t n : shape) count *= n;
    places_[name] = {std::move(shape), next_};
    next_ += count * sizeof(float);
  }
  void per_layer(const std::string& part, const TensorShape& shape) {
    for (std::int32_t l = 0; l < header_.layers; ++l) {
      add(fmt::format("model.layers.{}.{}.weight", l, part), shape);
    }
  }

  MappedFile file_;
  Header header_;
  std::size_t next_ = sizeof(Header);
  std::map<std::string, Place> places_;
};

/// tokenizer.bin: longest piece (i32), then per piece score (f32), length (i32) and bytes. Pieces 0
/// to 2 are control pieces, 3 to 258 the bytes.
std::vector<tokenizers::SentencePiece> read_pieces(const fs::path& path, std::size_t vocabulary) {
  const std::string raw = read_text_file(path);
  std::vector<tokenizers::SentencePiece> pieces;
  std::size_t at = 4;
  for (std::size_t i = 0; i < vocabulary; ++i) {
    float score = 0;
    std::int32_t length = 0;
    if (raw.size() < at + 8) throw DataError(fmt::format("{}: ends too early", path.string()));
    std::memcpy(&score, raw.data() + at, 4);
    std::memcpy(&length, raw.data() + at + 4, 4);
    if (length < 0 || raw.size() - at - 8 < as_size(length)) {
      throw DataError(fmt::format("{}: ends too early", path.string()));
    }
    pieces.push_back({raw.substr(at + 8, as_size(length)), score, tokenizers::PieceKind::normal});
    at += 8 + as_size(length);
  }
  constexpr std::array kControl{"<unk>", "<s>", "</s>"};
  for (std::size_t i = 0; i < pieces.size() && i < 259; ++i) {
    if (i < 3) {
      pieces[i] = {kControl[i], 0,
                   i == 0 ? tokenizers::PieceKind::unknown : tokenizers::PieceKind::control};
    } else {
      pieces[i] = {fmt::format("<0x{:02X}>", i - 3), 0, tokenizers::PieceKind::byte};
    }
  }
  return pieces;
}

void find_tokenizer(Checkpoint& checkpoint, const fs::path& path, std::size_t vocabulary) {
  const fs::path pieces = path.parent_path() / "tokenizer.bin";
  try {
    if (!fs::exists(pieces)) {
      throw DataError(
          fmt::format("{}: no such file; llama2.c keeps its tokenizer there", pieces.string()));
    }
    checkpoint.tokenizer =
        tokenizers::make_piece_tokenizer(read_pieces(pieces, vocabulary), {}, pieces.string());
  } catch (const Error& error) {
    checkpoint.tokenizer_note = error.what();
  }
}

}  // namespace

Checkpoint open_llama2c(const fs::path& path) {
  Checkpoint checkpoint;
  checkpoint.origin = path.string();
  auto source = std::make_unique<Llama2cSource>(path, checkpoint.origin);
  const Header h = source->header();
  *checkpoint.config = {{"model_type", "llama"},
                        {"hidden_size", h.width},
                        {"intermediate_size", h.ffn},
                        {"num_hidden_layers", h.layers},
                        {"num_attention_heads", h.heads},
                        {"num_key_value_heads", h.key_heads},
                        {"vocab_size", std::abs(h.vocabulary)},
                        {"max_position_embeddings", h.context},
                        {"rms_norm_eps", 1e-5},
                        {"rope_theta", 10000.0},
                        {"bos_token_id", 1},
                        {"eos_token_id", 2},
                        {"tie_word_embeddings", h.vocabulary > 0}};
  checkpoint.tensors = std::move(source);
  find_tokenizer(checkpoint, path, as_size(std::abs(h.vocabulary)));
  return checkpoint;
}

}  // namespace fathom::pretrained
