#include <fmt/format.h>

#include <queue>

#include "core/counts.h"
#include "core/error.h"
#include "core/text.h"
#include "tokenizers/piece_model.h"
#include "tokenizers/unicode.h"

namespace fathom::tokenizers {
namespace {

struct Merge {
  std::uint32_t rank;
  TokenId result;
};

std::uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

/// Symbols as a linked list, candidates in a heap: O(n log n) for a text of any length.
class Merging {
 public:
  Merging(const std::vector<TokenId>& ids, const std::unordered_map<std::uint64_t, Merge>& merges)
      : merges_(merges) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      symbols_.push_back({ids[i], static_cast<std::int32_t>(i) - 1,
                          i + 1 < ids.size() ? static_cast<std::int32_t>(i) + 1 : -1});
    }
    for (std::int32_t i = 0; i + 1 < std::ssize(symbols_); ++i) propose(i);
  }

  void run() {
    while (!heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      Symbol& left = at(best.left);
      if (left.id != best.left_id || left.next < 0 || at(left.next).id != best.right_id) continue;
      Symbol& right = at(left.next);
      left.id = best.result;
      right.id = kGone;
      left.next = right.next;
      if (left.next >= 0) at(left.next).previous = best.left;
      if (left.previous >= 0) propose(left.previous);
      propose(best.left);
    }
  }
  void append_to(std::vector<TokenId>& ids) const {
    for (std::int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[as_size(i)].next) {
      ids.push_back(symbols_[as_size(i)].id);
    }
  }

 private:
  static constexpr TokenId kGone = -1;
  struct Symbol {
    TokenId id;
    std::int32_t previous, next;
  };
  struct Candidate {
    std::uint32_t rank;
    std::int32_t left;
    TokenId left_id, right_id, result;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  Symbol& at(std::int32_t i) { return symbols_[as_size(i)]; }
  void propose(std::int32_t left) {
    const Symbol& symbol = at(left);
    if (symbol.next < 0) return;
    const auto found = merges_.find(pair_key(symbol.id, at(symbol.next).id));
    if (found == merges_.end()) return;
    heap_.push({found->second.rank, left, symbol.id, at(symbol.next).id, found->second.result});
  }

  const std::unordered_map<std::uint64_t, Merge>& merges_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> heap_;
};

class Bpe : public PieceModel {
 public:
  Bpe(BpeOptions options, const std::string& origin)
      : PieceModel(std::move(options.vocabulary)),
        fuse_unknown_(options.fuse_unknown),
        byte_fallback_(options.byte_fallback),
        whole_piece_first_(options.whole_piece_first),
        prefix_(options.continuing_prefix),
        suffix_(options.word_suffix) {
    if (options.unknown) unknown_ = find(*options.unknown);
    for (std::size_t rank = 0; rank < options.merges.size(); ++rank) {
      const auto& [left, right] = options.merges[rank];
      const auto a = find(left), b = find(right);
      const std::string joined =
          left + (right.starts_with(prefix_) ? right.substr(prefix_.size()) : right);
      const auto result = find(joined);
      if (!a || !b || !result) {
        throw DataError(fmt::format("{}: the merge '{} {}' uses a token outside the vocabulary",
                                    origin, printable(left), printable(right)));
      }
      merges_.emplace(pair_key(*a, *b), Merge{static_cast<std::uint32_t>(rank), *result});
    }
  }

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    if (whole_piece_first_) {
      if (const auto whole = find(std::string(piece))) {
        ids.push_back(*whole);
        return;
      }
    }
    Merging merging(symbols(piece), merges_);
    merging.run();
    merging.append_to(ids);
  }

 private:
  std::vector<TokenId> symbols(std::string_view piece) const {
    std::vector<TokenId> ids;
    bool after_unknown = false;
    std::size_t at = 0;
    for_each_character(piece, [&](std::int32_t, std::string_view bytes) {
      std::string token(bytes);
      if (at > 0) token = prefix_ + token;
      at += bytes.size();
      if (at == piece.size()) token += suffix_;
      if (const auto known = find(token)) {
        ids.push_back(*known);
        after_unknown = false;
      } else if (byte_fallback_ && append_bytes(bytes, ids)) {
        after_unknown = false;
      } else if (unknown_) {
        if (!(fuse_unknown_ && after_unknown)) ids.push_back(*unknown_);
        after_unknown = true;
      }
    });
    return ids;
  }

  bool fuse_unknown_, byte_fallback_, whole_piece_first_;
  std::string prefix_, suffix_;
  std::optional<TokenId> unknown_;
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace

std::optional<TokenId> PieceModel::find(const std::string& token) const {
  const auto found = vocabulary_.find(token);
  return found == vocabulary_.end() ? std::nullopt : std::optional(found->second);
}

bool PieceModel::append_bytes(std::string_view bytes, std::vector<TokenId>& ids) const {
  std::vector<TokenId> found;
  for (const char c : bytes) {
    const auto id = find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
    if (!id) return false;
    found.push_back(*id);
  }
  ids.insert(ids.end(), found.begin(), found.end());
  return true;
}

std::unique_ptr<PieceModel> make_bpe(BpeOptions options, const std::string& origin) {
  return std::make_unique<Bpe>(std::move(options), origin);
}

}  // namespace fathom::tokenizers
