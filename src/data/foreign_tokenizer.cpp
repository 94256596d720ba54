// A SentencePiece model made elsewhere, used as it is: its own normaliser and its own flags, such
// as the leading space of Llama's. encode() and decode() are SentencePiece's, over whole texts;
// a text comes back as the model's normaliser left it. Counts of bytes (bits per byte)
// are those of the pieces, so a space added before each document counts as one byte.
#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/utf8.h"
#include "data/sentencepiece_pieces.h"
#include "data/tokenizer.h"

namespace fathom::data {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

class ForeignTokenizer : public Tokenizer {
 public:
  ForeignTokenizer(std::unique_ptr<Processor> model, std::string serialised, bool starts_text)
      : Tokenizer("sentencepiece", all_pieces(*model), model->eos_id()),
        model_(std::move(model)),
        serialised_(std::move(serialised)),
        starts_text_(starts_text) {}

  std::vector<TokenId> text_start() const override {
    if (!starts_text_ || model_->bos_id() < 0) return {};
    return {model_->bos_id()};
  }

  std::unique_ptr<Encoder> encoder() const override {
    class ForeignEncoder : public Encoder {
     public:
      explicit ForeignEncoder(const ForeignTokenizer& owner) : owner_(owner) {}
      void encode(std::string_view text, std::vector<TokenId>& ids) override {
        owner_.append_ids(text, ids);
      }

     private:
      const ForeignTokenizer& owner_;
    };
    return std::make_unique<ForeignEncoder>(*this);
  }

  std::string decode(std::span<const TokenId> ids) const override {
    for (const TokenId id : ids) (void)bytes_of(id);  // inside the vocabulary
    std::string text;
    const auto status = model_->Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok()) throw InternalError(fmt::format("SentencePiece: {}", status.ToString()));
    return text;
  }

  void save(const std::filesystem::path& folder) const override {
    save_sentencepiece(folder, kind(), vocabulary(), serialised_);
  }

 private:
  void append_ids(std::string_view text, std::vector<TokenId>& ids) const {
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
      throw DataError(
          fmt::format("byte {}: not valid UTF-8; the bytes tokenizer takes any bytes", bad));
    }
    std::vector<int> found;
    const auto status = model_->Encode(absl::string_view(text.data(), text.size()), &found);
    if (!status.ok()) throw InternalError(fmt::format("SentencePiece: {}", status.ToString()));
    ids.insert(ids.end(), found.begin(), found.end());
  }

  std::unique_ptr<Processor> model_;
  std::string serialised_;
  bool starts_text_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_foreign_tokenizer(std::string model, const std::string& origin,
                                                  bool starts_text) {
  auto processor = std::make_unique<Processor>();
  const auto status = processor->LoadFromSerializedProto(model);
  if (!status.ok()) throw DataError(fmt::format("{}: not a SentencePiece model", origin));
  if (processor->eos_id() < 0) {
    throw DataError(
        fmt::format("{}: this model cannot be used: it has no end-of-sentence piece", origin));
  }
  return std::make_unique<ForeignTokenizer>(std::move(processor), std::move(model), starts_text);
}

}  // namespace fathom::data
