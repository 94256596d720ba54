#include "tokenizers/hf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "core/utf8.h"
#include "tokenizers/added_tokens.h"
#include "tokenizers/piece_model.h"
#include "tokenizers/steps.h"

namespace fathom::tokenizers {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

/// Everything a tokenizer.json says, ready for use.
struct Parts {
  std::vector<std::string> bytes;  // of every id
  std::vector<AddedToken> raw_added, normalised_added;
  Normaliser normalise;
  PreTokeniser pre_tokenise;
  std::unique_ptr<PieceModel> model;
  Ids front, back;
  TokenId end_of_document = 0;
};

class HfTokenizer : public data::Tokenizer {
 public:
  explicit HfTokenizer(Parts parts)
      : Tokenizer("huggingface", std::move(parts.bytes), parts.end_of_document),
        parts_(std::move(parts)) {}

  std::unique_ptr<data::Encoder> encoder() const override {
    return std::make_unique<HfEncoder>(parts_);
  }
  std::vector<TokenId> text_start() const override { return parts_.front; }
  std::vector<TokenId> text_end() const override { return parts_.back; }
  void save(const std::filesystem::path& folder) const override {
    throw ConfigError(
        fmt::format("{}: a tokenizer of this kind cannot be written; copy the model's own files",
                    folder.string()));
  }

 private:
  class HfEncoder : public data::Encoder {
   public:
    explicit HfEncoder(const Parts& parts) : parts_(parts) {}

    void encode(std::string_view text, Ids& ids) override {
      if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
        throw DataError(fmt::format("byte {}: not valid UTF-8", bad));
      }
      bool first = true;
      for (const AddedCut& cut : cut_added(text, parts_.raw_added)) {
        if (cut.id >= 0) {
          ids.push_back(cut.id);
        } else {
          encode_plain(cut.text, first, ids);
        }
        first = false;
      }
    }

   private:
    void encode_plain(std::string_view text, bool first, Ids& ids) {
      const std::string normal = parts_.normalise(std::string(text));
      for (const AddedCut& cut : cut_added(normal, parts_.normalised_added)) {
        if (cut.id >= 0) {
          ids.push_back(cut.id);
        } else {
          std::vector<Piece> pieces{{std::string(cut.text), first}};
          parts_.pre_tokenise(pieces);
          for (const Piece& piece : pieces) append_piece(piece.text, ids);
        }
        first = false;
      }
    }
    void append_piece(const std::string& piece, Ids& ids) {
      constexpr std::size_t kLongestKept = 64, kMostKept = 1u << 16;
      if (piece.size() > kLongestKept) return parts_.model->encode(piece, ids);
      auto [found, fresh] = cache_.try_emplace(piece);
      if (fresh) parts_.model->encode(piece, found->second);
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      if (cache_.size() > kMostKept) cache_.clear();
    }

    const Parts& parts_;
    std::unordered_map<std::string, Ids> cache_;
  };

  Parts parts_;
};

/// How ids turn back into bytes.
enum class Spelling { byte_level, blank_mark, word_piece, plain };

bool mentions(const Json& spec, const char* type) {
  return spec.dump().find(fmt::format("\"type\":\"{}\"", type)) != std::string::npos;
}

Spelling spelling_of(const Json& tokenizer) {
  for (const char* part : {"pre_tokenizer", "decoder"}) {
    if (tokenizer.contains(part) && mentions(tokenizer.at(part), "ByteLevel")) {
      return Spelling::byte_level;
    }
  }
  const Json& model = tokenizer.at("model");
  const std::string type = model.value("type", "");
  if (type == "WordPiece" || (type.empty() && !model.contains("merges"))) {
    return Spelling::word_piece;
  }
  if (type == "Unigram" || model.value("byte_fallback", false)) return Spelling::blank_mark;
  return tokenizer.dump().find(kBlankMark) != std::string::npos ? Spelling::blank_mark
                                                                : Spelling::plain;
}

std::string spell(const std::string& token, Spelling spelling) {
  switch (spelling) {
    case Spelling::byte_level:
      return bytes_of_characters(token);
    case Spelling::word_piece:
      return token.starts_with("##") ? token.substr(2) : " " + token;
    case Spelling::plain:
      return token;
    case Spelling::blank_mark:
      break;
  }
  if (token.size() == 6 && token.starts_with("<0x") && token.back() == '>') {
    unsigned value = 0;
    const auto end = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
    if (end.ptr == token.data() + 5) return std::string(1, static_cast<char>(value));
  }
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const bool blank = std::string_view(token).substr(at).starts_with(kBlankMark);
    bytes += blank ? ' ' : token[at];
    at += blank ? kBlankMark.size() : 1;
  }
  return bytes;
}

void read_added(const Json& tokenizer, Parts& parts) {
  const auto list = tokenizer.find("added_tokens");
  if (list == tokenizer.end() || !list->is_array()) return;
  for (const Json& each : *list) {
    AddedToken token;
    token.text = each.at("content");
    token.id = each.at("id");
    token.special = each.value("special", false);
    token.normalised = each.value("normalized", false);
    token.single_word = each.value("single_word", false);
    token.strip_left = each.value("lstrip", false);
    token.strip_right = each.value("rstrip", false);
    (token.normalised ? parts.normalised_added : parts.raw_added).push_back(token);
  }
}

/// Ids before and after the text, of whichever processor there is.
void read_processor(const Json& spec, Parts& parts, const std::string& origin) {
  if (spec.is_null()) return;
  const std::string type = spec.at("type");
  if (type == "Sequence") {
    for (const Json& each : spec.at("processors")) read_processor(each, parts, origin);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    parts.front.push_back(spec.at("cls").at(1));
    parts.back.push_back(spec.at("sep").at(1));
  } else if (type == "TemplateProcessing") {
    bool before = true;
    for (const Json& item : spec.at("single")) {
      if (item.contains("Sequence")) {
        before = false;
        continue;
      }
      const std::string name = item.at("SpecialToken").at("id");
      const Ids ids = spec.at("special_tokens").at(name).at("ids").get<Ids>();
      Ids& side = before ? parts.front : parts.back;
      side.insert(side.end(), ids.begin(), ids.end());
    }
  } else if (type != "ByteLevel") {
    throw DataError(fmt::format("{}: the post-processor '{}' is not known", origin, type));
  }
}

/// "eos_token": a text or {"content": text}.
std::string token_text(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return "";
  if (found->is_string()) return *found;
  return found->is_object() ? found->value("content", "") : "";
}

std::optional<TokenId> find_token(const Parts& parts, const std::string& text) {
  for (const auto* list : {&parts.raw_added, &parts.normalised_added}) {
    for (const AddedToken& token : *list) {
      if (token.text == text) return token.id;
    }
  }
  const auto found = parts.model->vocabulary().find(text);
  if (text.empty() || found == parts.model->vocabulary().end()) return std::nullopt;
  return found->second;
}

void spell_all(Parts& parts, Spelling spelling, const std::string& origin) {
  constexpr TokenId kMost = 1 << 24;
  TokenId highest = 0;
  const auto consider = [&](TokenId id) {
    if (id < 0 || id > kMost) throw DataError(fmt::format("{}: an id of {}", origin, id));
    highest = std::max(highest, id);
  };
  for (const auto& [token, id] : parts.model->vocabulary()) consider(id);
  for (const auto* list : {&parts.raw_added, &parts.normalised_added}) {
    for (const AddedToken& token : *list) consider(token.id);
  }
  parts.bytes.assign(as_size(highest) + 1, "");
  for (const auto& [token, id] : parts.model->vocabulary()) {
    parts.bytes[as_size(id)] = spell(token, spelling);
  }
  for (const auto* list : {&parts.raw_added, &parts.normalised_added}) {
    for (const AddedToken& token : *list) {
      parts.bytes[as_size(token.id)] = token.special ? "" : token.text;
    }
  }
}

void check_ids(const Ids& ids, const Parts& parts, const std::string& origin) {
  for (const TokenId id : ids) {
    if (id < 0 || as_size(id) >= parts.bytes.size()) {
      throw DataError(
          fmt::format("{}: the post-processor's id {} is outside the vocabulary", origin, id));
    }
  }
}

std::unique_ptr<data::Tokenizer> assemble(const Json& tokenizer, const Json& config,
                                          const std::string& origin) {
  const auto part = [&](const char* name) {
    return tokenizer.contains(name) ? tokenizer.at(name) : Json();
  };
  Parts parts;
  parts.model = make_piece_model(tokenizer.at("model"), origin);
  read_added(tokenizer, parts);
  parts.normalise = make_normaliser(part("normalizer"), origin);
  parts.pre_tokenise = make_pre_tokeniser(part("pre_tokenizer"), origin);
  read_processor(part("post_processor"), parts, origin);
  spell_all(parts, spelling_of(tokenizer), origin);
  const auto start = find_token(parts, token_text(config, "bos_token"));
  // The processor of the file decides; the key counts where there is none.
  if (parts.front.empty() && start && config.value("add_bos_token", false)) {
    parts.front.push_back(*start);
  }
  check_ids(parts.front, parts, origin);
  check_ids(parts.back, parts, origin);
  auto end = find_token(parts, token_text(config, "eos_token"));
  if (!end && !parts.back.empty()) end = parts.back.front();
  for (const char* name : {"</s>", "<|endoftext|>", "[SEP]", "<eos>"}) {
    if (!end) end = find_token(parts, name);
  }
  parts.end_of_document = end.value_or(0);
  return std::make_unique<HfTokenizer>(std::move(parts));
}

}  // namespace

std::unique_ptr<data::Tokenizer> make_hf_tokenizer(const Json& tokenizer, const Json& config,
                                                   const std::string& origin) {
  try {
    return assemble(tokenizer, config, origin);
  } catch (const Json::exception& error) {
    throw DataError(
        fmt::format("{}: not a tokenizer description ({})", origin, json_problem(error)));
  }
}

}  // namespace fathom::tokenizers
