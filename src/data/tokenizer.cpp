#include "data/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_file.h"
#include "core/json_text.h"
#include "core/utf8.h"

namespace fathom::data {
namespace {

constexpr const char* kTokenizerSchema = "fathom.tokenizer.v1";
constexpr std::size_t kModelLimitBytes = 64u << 20;

class ByteTokenizer : public Tokenizer {
 public:
  ByteTokenizer() : Tokenizer("bytes", tokens(), 256) {}

  std::unique_ptr<Encoder> encoder() const override {
    class ByteEncoder : public Encoder {
      void encode(std::string_view text, std::vector<TokenId>& ids) override {
        const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
        ids.insert(ids.end(), bytes, bytes + text.size());
      }
    };
    return std::make_unique<ByteEncoder>();
  }
  void save(const std::filesystem::path& folder) const override {
    const nlohmann::ordered_json document{{"schema", kTokenizerSchema}, {"kind", "bytes"}};
    write_file_atomically(folder / "tokenizer.json", json_file_text(document));
  }

 private:
  static std::vector<std::string> tokens() {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    tokens.emplace_back();
    return tokens;
  }
};

class CharTokenizer : public Tokenizer {
 public:
  explicit CharTokenizer(const std::vector<std::uint32_t>& alphabet)
      : Tokenizer("chars", tokens(alphabet), static_cast<TokenId>(alphabet.size())) {
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
      ids_[static_cast<std::int32_t>(alphabet[i])] = static_cast<TokenId>(i);
    }
  }

  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<CharEncoder>(*this); }
  void save(const std::filesystem::path& folder) const override {
    std::string alphabet;
    for (std::uint64_t id = 0; id + 1 < vocabulary(); ++id) {
      alphabet += bytes_of(static_cast<TokenId>(id));
    }
    const nlohmann::ordered_json document{
        {"schema", kTokenizerSchema}, {"kind", "chars"}, {"alphabet", alphabet}};
    write_file_atomically(folder / "tokenizer.json", json_file_text(document));
  }

 private:
  class CharEncoder : public Encoder {
   public:
    explicit CharEncoder(const CharTokenizer& owner) : owner_(owner) {}
    void encode(std::string_view text, std::vector<TokenId>& ids) override {
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        const std::int32_t code_point = next_code_point(text, at);
        if (code_point < 0) {
          throw DataError(
              fmt::format("byte {}: not valid UTF-8; the bytes tokenizer takes any "
                          "bytes",
                          start));
        }
        const auto found = owner_.ids_.find(code_point);
        if (found == owner_.ids_.end()) {
          throw DataError(
              fmt::format("byte {}: the character U+{:04X} is not in the tokenizer's "
                          "alphabet",
                          start, code_point));
        }
        ids.push_back(found->second);
      }
    }

   private:
    const CharTokenizer& owner_;
  };

  static std::vector<std::string> tokens(const std::vector<std::uint32_t>& alphabet) {
    std::vector<std::string> tokens(alphabet.size() + 1);
    for (std::size_t i = 0; i < alphabet.size(); ++i) append_utf8(tokens[i], alphabet[i]);
    return tokens;
  }

  std::unordered_map<std::int32_t, TokenId> ids_;
};

std::vector<std::uint32_t> parse_alphabet(std::string_view text, const std::string& origin) {
  std::vector<std::uint32_t> alphabet;
  for (std::size_t at = 0; at < text.size();) {
    const std::int32_t code_point = next_code_point(text, at);
    if (code_point < 0 ||
        (!alphabet.empty() && alphabet.back() >= static_cast<std::uint32_t>(code_point))) {
      throw DataError(fmt::format("{}: the alphabet is not in increasing order", origin));
    }
    alphabet.push_back(static_cast<std::uint32_t>(code_point));
  }
  return alphabet;
}

}  // namespace

Tokenizer::Tokenizer(std::string kind, std::vector<std::string> tokens, TokenId end_of_document)
    : kind_(std::move(kind)), tokens_(std::move(tokens)), end_of_document_(end_of_document) {
  Hasher hasher;
  hasher.add_field(kind_);
  hasher.add(&end_of_document_, sizeof end_of_document_);
  for (const std::string& token : tokens_) hasher.add_field(token);
  hash_ = hasher.value();
}

const std::string& Tokenizer::bytes_of(TokenId id) const {
  if (id < 0 || as_size(id) >= tokens_.size()) {
    throw InternalError(fmt::format("token {} outside the vocabulary of {}", id, tokens_.size()));
  }
  return tokens_[id];
}

std::vector<std::uint32_t> Tokenizer::token_bytes() const {
  std::vector<std::uint32_t> lengths;
  for (const std::string& token : tokens_) {
    lengths.push_back(static_cast<std::uint32_t>(token.size()));
  }
  return lengths;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  std::vector<TokenId> ids;
  encoder()->encode(text, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) text += bytes_of(id);
  return text;
}

std::unique_ptr<Tokenizer> make_byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

std::unique_ptr<Tokenizer> make_char_tokenizer(const std::vector<std::uint32_t>& alphabet) {
  return std::make_unique<CharTokenizer>(alphabet);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const auto file = folder / "tokenizer.json";
  const nlohmann::json document = read_json_file(file);
  const auto text = [&](const char* key) {
    if (!document.is_object() || !document.contains(key) || !document[key].is_string()) {
      throw DataError(fmt::format("{}: '{}' is missing or no text", file.string(), key));
    }
    return document[key].get<std::string>();
  };
  if (text("schema") != kTokenizerSchema) {
    throw DataError(fmt::format("{}: schema '{}', this program reads '{}'", file.string(),
                                text("schema"), kTokenizerSchema));
  }
  const std::string kind = text("kind");
  if (kind == "bytes") return make_byte_tokenizer();
  if (kind == "chars") return make_char_tokenizer(parse_alphabet(text("alphabet"), file.string()));
  if (kind != "bpe" && kind != "sentencepiece") {
    throw DataError(fmt::format("{}: unknown kind '{}'", file.string(), kind));
  }
  const auto model_file = folder / "tokenizer.model";
  std::string model = read_text_file(model_file, kModelLimitBytes);
  if (hash_bytes(model).hex() != text("model_hash")) {
    throw DataError(fmt::format("{}: not the file that tokenizer.json names (its hash differs)",
                                model_file.string()));
  }
  return kind == "bpe" ? make_bpe_tokenizer(std::move(model), model_file.string())
                       : make_foreign_tokenizer(std::move(model), model_file.string());
}

}  // namespace fathom::data
