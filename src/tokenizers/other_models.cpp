// WordPiece and Unigram, and the choice of a model by its file.
#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/utf8.h"
#include "tokenizers/piece_model.h"
#include "tokenizers/unicode.h"

namespace fathom::tokenizers {
namespace {

using Json = nlohmann::json;

class WordPiece : public PieceModel {
 public:
  WordPiece(Vocabulary vocabulary, const std::string& unknown, std::string prefix,
            std::size_t longest_word, const std::string& origin)
      : PieceModel(std::move(vocabulary)), prefix_(std::move(prefix)), longest_word_(longest_word) {
    const auto id = find(unknown);
    if (!id) throw DataError(fmt::format("{}: '{}' is not in the vocabulary", origin, unknown));
    unknown_ = *id;
  }

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    std::vector<std::size_t> cuts{0};
    for_each_character(piece, [&](std::int32_t, std::string_view bytes) {
      cuts.push_back(cuts.back() + bytes.size());
    });
    if (cuts.size() - 1 > longest_word_) return ids.push_back(unknown_);
    std::vector<TokenId> found;
    for (std::size_t begin = 0; begin + 1 < cuts.size();) {
      std::size_t end = cuts.size() - 1;
      std::optional<TokenId> id;
      for (; end > begin && !id; --end) {
        const auto part = piece.substr(cuts[begin], cuts[end] - cuts[begin]);
        id = find((begin > 0 ? prefix_ : "") + std::string(part));
      }
      if (!id) return ids.push_back(unknown_);
      found.push_back(*id);
      begin = end + 1;
    }
    ids.insert(ids.end(), found.begin(), found.end());
  }

 private:
  std::string prefix_;
  std::size_t longest_word_;
  TokenId unknown_ = 0;
};

class Unigram : public PieceModel {
 public:
  Unigram(Vocabulary vocabulary, const std::vector<UnigramPiece>& pieces,
          std::optional<std::size_t> unknown, bool byte_fallback)
      : PieceModel(std::move(vocabulary)), byte_fallback_(byte_fallback) {
    double least = 0;
    for (const UnigramPiece& piece : pieces) {
      scores_.push_back(piece.score);
      longest_ = std::max(longest_, piece.text.size());
      least = std::min(least, piece.score);
    }
    if (unknown) unknown_ = static_cast<TokenId>(*unknown);
    unknown_score_ = least - 10;
  }

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    std::vector<Node> best(piece.size() + 1);
    best[0].score = 0;
    for (std::size_t begin = 0; begin < piece.size();) {
      std::size_t next = begin;
      if (next_code_point(piece, next) < 0) ++next;
      const auto offer = [&](std::size_t end, double score, TokenId id) {
        if (best[begin].score + score > best[end].score) {
          best[end] = {best[begin].score + score, begin, end, id};
        }
      };
      bool single = false;
      const std::size_t most = std::min(piece.size(), begin + longest_);
      for (std::size_t end = begin + 1; end <= most; ++end) {
        const auto id = find(std::string(piece.substr(begin, end - begin)));
        if (!id) continue;
        offer(end, scores_[as_size(*id)], *id);
        single = single || end == next;
      }
      if (!single) offer(next, unknown_score_, -1);
      begin = next;
    }
    std::vector<Node> path;
    for (std::size_t end = piece.size(); end > 0; end = best[end].begin) {
      path.push_back(best[end]);
    }
    std::reverse(path.begin(), path.end());
    append_path(piece, path, ids);
  }

 private:
  /// The best way to one place of the text and the last piece on it.
  struct Node {
    double score = -1e300;
    std::size_t begin = 0, end = 0;
    TokenId id = -1;  // -1: unknown
  };
  void append_path(std::string_view piece, const std::vector<Node>& path,
                   std::vector<TokenId>& ids) const {
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (path[i].id >= 0) {
        ids.push_back(path[i].id);
        continue;
      }
      const std::size_t begin = path[i].begin;
      while (i + 1 < path.size() && path[i + 1].id < 0) ++i;  // neighbours are one unknown
      const std::size_t end = path[i].end;
      if (byte_fallback_ && append_bytes(piece.substr(begin, end - begin), ids)) continue;
      if (unknown_ >= 0) ids.push_back(unknown_);
    }
  }

  bool byte_fallback_;
  std::vector<double> scores_;
  std::size_t longest_ = 1;
  TokenId unknown_ = -1;
  double unknown_score_ = 0;
};

Vocabulary read_vocabulary(const Json& object, const std::string& origin) {
  Vocabulary vocabulary;
  for (const auto& [token, id] : object.items()) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() > (1 << 24)) {
      throw DataError(
          fmt::format("{}: the id of '{}' is no small whole number", origin, printable(token)));
    }
    vocabulary.emplace(token, id.get<TokenId>());
  }
  return vocabulary;
}

std::unique_ptr<PieceModel> read_bpe(const Json& spec, const std::string& origin) {
  BpeOptions o;
  o.vocabulary = read_vocabulary(spec.at("vocab"), origin);
  for (const Json& merge : spec.at("merges")) {
    if (merge.is_array()) {
      o.merges.emplace_back(merge.at(0), merge.at(1));
      continue;
    }
    const std::string text = merge;
    const std::size_t blank = text.find(' ');
    if (blank == text.npos) {
      throw DataError(fmt::format("{}: the merge '{}' has no blank", origin, printable(text)));
    }
    o.merges.emplace_back(text.substr(0, blank), text.substr(blank + 1));
  }
  const auto text = [&](const char* key) {
    const auto found = spec.find(key);
    return found == spec.end() || found->is_null() ? std::string() : found->get<std::string>();
  };
  if (!text("unk_token").empty()) o.unknown = text("unk_token");
  o.fuse_unknown = spec.value("fuse_unk", false);
  o.byte_fallback = spec.value("byte_fallback", false);
  o.whole_piece_first = spec.value("ignore_merges", false);
  o.continuing_prefix = text("continuing_subword_prefix");
  o.word_suffix = text("end_of_word_suffix");
  return make_bpe(std::move(o), origin);
}

std::unique_ptr<PieceModel> read_unigram(const Json& spec, const std::string& origin) {
  std::vector<UnigramPiece> pieces;
  for (const Json& each : spec.at("vocab")) pieces.push_back({each.at(0), each.at(1)});
  const auto unknown = spec.find("unk_id");
  if (unknown != spec.end() && !unknown->is_null() &&
      (!unknown->is_number_integer() || unknown->get<std::int64_t>() < 0 ||
       unknown->get<std::int64_t>() >= std::ssize(pieces))) {
    throw DataError(fmt::format("{}: unk_id is outside the vocabulary", origin));
  }
  return make_unigram(pieces,
                      unknown == spec.end() || unknown->is_null()
                          ? std::nullopt
                          : std::optional(unknown->get<std::size_t>()),
                      spec.value("byte_fallback", false));
}

/// Longer words become the unknown token.
std::size_t longest_word(const Json& spec, const std::string& origin) {
  const auto found = spec.find("max_input_chars_per_word");
  if (found == spec.end()) return 100;
  if (!found->is_number_integer() || *found < 0) {
    throw DataError(fmt::format("{}: max_input_chars_per_word is not a whole number", origin));
  }
  return found->get<std::size_t>();
}

}  // namespace

std::unique_ptr<PieceModel> make_word_piece(Vocabulary vocabulary, const std::string& unknown,
                                            const std::string& continuing_prefix,
                                            std::size_t longest_word, const std::string& origin) {
  return std::make_unique<WordPiece>(std::move(vocabulary), unknown, continuing_prefix,
                                     longest_word, origin);
}

std::unique_ptr<PieceModel> make_unigram(const std::vector<UnigramPiece>& pieces,
                                         std::optional<std::size_t> unknown, bool byte_fallback) {
  Vocabulary vocabulary;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    vocabulary.emplace(pieces[i].text, static_cast<TokenId>(i));
  }
  return std::make_unique<Unigram>(std::move(vocabulary), pieces, unknown, byte_fallback);
}

std::unique_ptr<PieceModel> make_piece_model(const Json& spec, const std::string& origin) {
  std::string type = spec.value("type", "");
  if (type.empty()) type = spec.contains("merges") ? "BPE" : "WordPiece";  // old files
  if (type == "BPE") return read_bpe(spec, origin);
  if (type == "Unigram") return read_unigram(spec, origin);
  if (type == "WordPiece") {
    return make_word_piece(
        read_vocabulary(spec.at("vocab"), origin), spec.value("unk_token", "[UNK]"),
        spec.value("continuing_subword_prefix", "##"), longest_word(spec, origin), origin);
  }
  throw DataError(fmt::format("{}: the model '{}' is not known", origin, printable(type)));
}

}  // namespace fathom::tokenizers
