// The SentencePiece side of the tokenizers.
//
// No piece of a model trained with split_by_whitespace contains a space after its first character,
// and none contains a line end. BPE merges only into pieces of the vocabulary, so it never merges
// across a space or a line end: encoding word by word gives the ids of encoding the whole text, and
// equal words can be looked up. Lookup makes encoding an order of magnitude faster.
//
// U+2581 stands for the space inside SentencePiece and would come back as one; it is encoded as its
// three byte pieces instead.
#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <array>
#include <unordered_map>

#include "core/error.h"
#include "core/utf8.h"
#include "data/sentencepiece_pieces.h"
#include "data/tokenizer.h"

namespace fathom::data {
namespace {

/// Words beyond this length or number are encoded each time: bounded memory, about 50 MB per
/// thread.
constexpr std::size_t kCachedWordBytes = 48;
constexpr std::size_t kCachedWords = 1 << 18;

using Processor = sentencepiece::SentencePieceProcessor;

class BpeTokenizer : public Tokenizer {
 public:
  BpeTokenizer(std::unique_ptr<Processor> model, std::string serialised)
      : Tokenizer("bpe", all_pieces(*model), model->eos_id()),
        model_(std::move(model)),
        serialised_(std::move(serialised)) {
    for (int id = 0; id < model_->GetPieceSize(); ++id) {
      if (!model_->IsByte(id)) continue;
      byte_ids_[static_cast<unsigned char>(bytes_of(id)[0])] = id;
    }
  }

  std::unique_ptr<Encoder> encoder() const override;
  void save(const std::filesystem::path& folder) const override {
    save_sentencepiece(folder, kind(), vocabulary(), serialised_);
  }

  void encode_word(std::string_view word, std::vector<TokenId>& ids) const {
    std::vector<int> found;
    const auto status = model_->Encode(absl::string_view(word.data(), word.size()), &found);
    if (!status.ok()) throw InternalError(fmt::format("SentencePiece: {}", status.ToString()));
    ids.insert(ids.end(), found.begin(), found.end());
  }
  void encode_bytes(std::string_view bytes, std::vector<TokenId>& ids) const {
    for (const char byte : bytes) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
  }

  /// "" or why this model cannot encode word by word and give every text back.
  std::string refuse() const {
    if (model_->eos_id() < 0) return "it has no end-of-sentence piece";
    for (int byte = 0; byte < 256; ++byte) {
      if (byte_ids_[byte] < 0) return "it has no byte pieces (train it with byte_fallback)";
    }
    for (int id = 0; id < model_->GetPieceSize(); ++id) {
      const std::string& bytes = bytes_of(id);
      if (model_->IsByte(id) || bytes.empty()) continue;
      if (bytes.find('\n') != std::string::npos || bytes.find(' ', 1) != std::string::npos) {
        return fmt::format("piece {} crosses a word or line end", id);
      }
    }
    std::vector<TokenId> ids;
    const std::string_view probes[] = {"a", " a", " ", "\xEF\xAC\x81 \xC2\xBD", "a\tb\r"};
    for (const std::string_view probe : probes) {
      ids.clear();
      encode_word(probe, ids);
      if (decode(ids) != probe) return "it normalises text (train it with the identity rule)";
    }
    return "";
  }

 private:
  std::unique_ptr<Processor> model_;
  std::string serialised_;
  std::array<TokenId, 256> byte_ids_ = [] {
    std::array<TokenId, 256> none{};
    none.fill(-1);
    return none;
  }();
};

class BpeEncoder : public Encoder {
 public:
  explicit BpeEncoder(const BpeTokenizer& owner) : owner_(owner) {}

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
      throw DataError(
          fmt::format("byte {}: not valid UTF-8; the bytes tokenizer takes any bytes", bad));
    }
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = word_end(text, at);
      add_word(text.substr(at, end - at), ids);
      at = end;
    }
  }

 private:
  /// A word runs up to the next space, line end, NUL or U+2581; the last three stand alone.
  static std::size_t word_end(std::string_view text, std::size_t at) {
    if (is_special(text, at)) return at + special_length(text, at);
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != ' ' && !is_special(text, end)) ++end;
    return end;
  }
  static bool is_special(std::string_view text, std::size_t at) {
    const char c = text[at];
    return c == '\n' || c == '\0' ||
           (c == kBlankMark[0] && text.substr(at).starts_with(kBlankMark));
  }
  static std::size_t special_length(std::string_view text, std::size_t at) {
    return text[at] == kBlankMark[0] ? kBlankMark.size() : 1;
  }

  void add_word(std::string_view word, std::vector<TokenId>& ids) {
    if (is_special(word, 0)) return owner_.encode_bytes(word, ids);
    if (word.size() > kCachedWordBytes) return owner_.encode_word(word, ids);
    key_.assign(word);
    const auto found = cache_.find(key_);
    if (found != cache_.end()) {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      return;
    }
    std::vector<TokenId> word_ids;
    owner_.encode_word(word, word_ids);
    ids.insert(ids.end(), word_ids.begin(), word_ids.end());
    if (cache_.size() < kCachedWords) cache_.emplace(key_, std::move(word_ids));
  }

  const BpeTokenizer& owner_;
  std::unordered_map<std::string, std::vector<TokenId>> cache_;
  std::string key_;
};

std::unique_ptr<Encoder> BpeTokenizer::encoder() const {
  return std::make_unique<BpeEncoder>(*this);
}

std::unique_ptr<BpeTokenizer> load(std::string model, const std::string& origin) {
  auto processor = std::make_unique<Processor>();
  const auto status = processor->LoadFromSerializedProto(model);
  if (!status.ok()) throw DataError(fmt::format("{}: not a SentencePiece model", origin));
  return std::make_unique<BpeTokenizer>(std::move(processor), std::move(model));
}

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(std::string model, const std::string& origin) {
  auto tokenizer = load(std::move(model), origin);
  if (const std::string reason = tokenizer->refuse(); !reason.empty()) {
    throw DataError(fmt::format("{}: this model cannot be used: {}", origin, reason));
  }
  return tokenizer;
}

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string model,
                                                        const std::string& origin) {
  auto exact = load(model, origin);
  if (exact->refuse().empty()) return exact;
  return make_foreign_tokenizer(std::move(model), origin);
}

}  // namespace fathom::data
