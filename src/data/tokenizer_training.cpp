#include "data/tokenizer_training.h"

#include <fmt/format.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/counts.h"
#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"

namespace fathom::data {
namespace {

const std::vector<std::string> kKinds{"bytes", "chars", "bpe"};

constexpr std::uint64_t kFixedPieces = 256 + 3;  // bytes; <unk>, <s>, </s>
constexpr std::uint64_t kSmallestVocabulary = 320;
constexpr std::uint64_t kLargestVocabulary = 65536;
/// SentencePiece skips longer lines; ours are cut before a space instead.
constexpr std::size_t kTrainingLineBytes = 4096;
/// Rarer characters are left to the byte pieces.
constexpr double kCharacterCoverage = 0.9999;
/// SentencePiece's symbol for the space; encoding writes it as bytes.
constexpr std::int32_t kBlankMarkCode = 0x2581;

/// The lines of the texts, one at a time, without line ends.
class LineIterator : public sentencepiece::SentenceIterator {
 public:
  explicit LineIterator(const std::vector<std::string>& texts) : texts_(texts) {
    LineIterator::Next();
  }
  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override {
    while (text_ < texts_.size()) {
      std::string_view rest = std::string_view(texts_[text_]).substr(at_);
      if (rest.empty()) {
        ++text_;
        at_ = 0;
        continue;
      }
      std::size_t length = std::min(rest.find('\n'), rest.size());
      if (length > kTrainingLineBytes) {
        const std::size_t blank = rest.substr(0, kTrainingLineBytes).rfind(' ');
        length = blank != std::string_view::npos && blank > 0
                     ? blank
                     : utf8_boundary(rest, kTrainingLineBytes);
      }
      line_ = rest.substr(0, length);
      at_ += length + (length < rest.size() && rest[length] == '\n');
      if (!line_.empty()) return;
    }
    done_ = true;
  }

 private:
  const std::vector<std::string>& texts_;
  std::size_t text_ = 0;
  std::size_t at_ = 0;
  std::string line_;
  bool done_ = false;
};

using CharacterSet = std::unordered_set<std::int32_t>;

/// The characters that get a piece of their own: the most frequent ones (ties by code point) until
/// kCharacterCoverage of the text is covered or half of the free vocabulary is taken. SentencePiece
/// has a coverage option, but refuses to cover less than 98 %, which text with thousands of
/// characters and a small vocabulary needs.
CharacterSet frequent_characters(const std::vector<std::string>& texts, std::uint64_t vocabulary) {
  std::unordered_map<std::int32_t, std::uint64_t> counts;
  std::uint64_t total = 0;
  for (const std::string& text : texts) {
    for (std::size_t at = 0; at < text.size();) {
      const std::int32_t code_point = next_code_point(text, at);
      if (code_point < 0) throw InternalError("the tokenizer sample is not UTF-8");
      if (code_point == '\n' || code_point == 0 || code_point == kBlankMarkCode) continue;
      ++counts[code_point];
      ++total;
    }
  }
  std::vector<std::pair<std::uint64_t, std::int32_t>> ranked;
  for (const auto& [code_point, count] : counts) ranked.emplace_back(count, -code_point);
  std::sort(ranked.rbegin(), ranked.rend());
  CharacterSet frequent;
  std::uint64_t covered = 0;
  for (const auto& [count, negative_code_point] : ranked) {
    const bool enough = as_double(covered) >= kCharacterCoverage * as_double(total);
    if (enough || frequent.size() >= (vocabulary - kFixedPieces) / 2) break;
    frequent.insert(-negative_code_point);
    covered += count;
  }
  return frequent;
}

/// Puts a line end in place of every other character, so that no piece is learned across it.
void keep_only(std::string& text, const CharacterSet& characters) {
  std::string kept;
  kept.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    if (characters.contains(next_code_point(text, at))) {
      kept.append(text, start, at - start);
    } else {
      kept += '\n';
    }
  }
  text = std::move(kept);
}

/// SentencePiece says how large a vocabulary would work: "... Please set it to a value <= 741." It
/// breaks ties in the order of memory, so that the next call may stop a few pieces earlier: a
/// slightly smaller size is named.
std::string too_small_text(std::size_t bytes, std::uint64_t vocabulary, const std::string& reason) {
  const std::size_t found = reason.find("value <= ");
  const std::uint64_t most =
      found == std::string::npos ? 0 : std::strtoull(reason.c_str() + found + 9, nullptr, 10);
  return fmt::format("{} bytes of training text are too few for a bpe vocabulary of {}; {}", bytes,
                     vocabulary,
                     most >= kSmallestVocabulary
                         ? fmt::format("they give about {} (--vocab {}); or take the bytes "
                                       "tokenizer, or more text",
                                       most, std::max(most - most / 64, kSmallestVocabulary))
                         : "take the bytes tokenizer (--tokenizer bytes), or more text");
}

}  // namespace

const std::vector<std::string>& tokenizer_kinds() {
  return kKinds;
}

void check(const TokenizerRequest& request) {
  if (std::ranges::find(kKinds, request.kind) == kKinds.end()) {
    throw ConfigError(fmt::format("tokenizer '{}' is not known.{} Choose from: {}", request.kind,
                                  did_you_mean(request.kind, kKinds), join(kKinds, ", ")));
  }
  if (request.kind == "bpe" &&
      (request.vocabulary < kSmallestVocabulary || request.vocabulary > kLargestVocabulary)) {
    throw ConfigError(
        fmt::format("a bpe vocabulary lies between {} (256 byte pieces, 3 control "
                    "pieces, 61 of text) and {}, not {}",
                    kSmallestVocabulary, kLargestVocabulary, request.vocabulary));
  }
  if (request.sample_bytes < 1000)
    throw ConfigError("the tokenizer sample needs 1000 bytes or more");
}

struct TokenizerTrainer::Sample {
  std::vector<std::pair<std::uint64_t, std::string>> pieces;  // hash, text
  std::uint64_t bytes = 0;
  std::uint64_t threshold = ~0ull;

  void add(const std::string& text, std::uint64_t limit) {
    const std::uint64_t hash = hash_bytes(text).low;
    if (hash > threshold) return;
    pieces.emplace_back(hash, text);
    bytes += text.size();
    while (bytes > limit && pieces.size() > 1) {
      threshold /= 2;
      std::erase_if(pieces, [&](const auto& piece) {
        if (piece.first > threshold) bytes -= piece.second.size();
        return piece.first > threshold;
      });
    }
  }
};

TokenizerTrainer::TokenizerTrainer(const TokenizerRequest& request) : request_(request) {
  check(request_);
  if (request_.kind == "chars") seen_.resize(0x110000);
  sample_ = std::make_unique<Sample>();
}

TokenizerTrainer::~TokenizerTrainer() = default;

void TokenizerTrainer::look(const Piece& piece, Split split) {
  if (!needs_text()) return;
  for (std::size_t at = 0; at < piece.text.size();) {
    const std::int32_t code_point = next_code_point(piece.text, at);
    if (code_point < 0) {
      throw DataError(
          fmt::format("{}: byte {}: not valid UTF-8; the bytes tokenizer takes any bytes",
                      piece.origin, piece.offset + at));
    }
    if (!seen_.empty()) seen_[code_point] = true;
  }
  if (request_.kind == "bpe" && split == Split::train) {
    sample_->add(piece.text, request_.sample_bytes);
  }
}

std::unique_ptr<Tokenizer> TokenizerTrainer::build() {
  if (request_.kind == "bytes") return make_byte_tokenizer();
  if (request_.kind == "chars") {
    std::vector<std::uint32_t> alphabet;
    for (std::uint32_t c = 0; c < seen_.size(); ++c) {
      if (seen_[c]) alphabet.push_back(c);
    }
    return make_char_tokenizer(alphabet);
  }
  std::vector<std::string> texts;
  for (auto& [hash, text] : sample_->pieces) texts.push_back(std::move(text));
  sample_->pieces.clear();
  return make_bpe_tokenizer(train_bpe_model(std::move(texts), request_.vocabulary),
                            "trained tokenizer");
}

std::string train_bpe_model(std::vector<std::string> texts, std::uint64_t vocabulary) {
  const CharacterSet characters = frequent_characters(texts, vocabulary);
  if (characters.empty())
    throw DataError("there is no training text to learn a bpe vocabulary from");
  std::size_t bytes = 0;
  for (std::string& text : texts) {
    bytes += text.size();
    keep_only(text, characters);
  }
  const std::unordered_map<std::string, std::string> arguments{
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocabulary)},
      {"character_coverage", "1.0"},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"split_digits", "true"},
      {"max_sentence_length", "16384"},
      {"num_threads", "1"},
      {"minloglevel", "2"},
  };
  LineIterator lines(texts);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &lines, &model);
  if (!status.ok()) {
    throw DataError(too_small_text(bytes, vocabulary, status.ToString()));
  }
  return model;
}

}  // namespace fathom::data
