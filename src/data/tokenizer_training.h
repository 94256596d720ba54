// Building a tokenizer from a corpus, in one pass and bounded memory.
//
// chars takes its alphabet from the whole corpus, held-out documents included: a character that
// training text lacks must still have an id. bpe learns from training documents only, from a sample
// of at most `sample_bytes`: pieces whose hash lies below a threshold that halves whenever the
// sample overflows, so the sample depends on the set of pieces and not on their order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/tokenizer.h"

namespace fathom::data {

struct TokenizerRequest {
  std::string kind = "bytes";       // bytes, chars, bpe
  std::uint64_t vocabulary = 2000;  // bpe only
  std::uint64_t sample_bytes = 32'000'000;
};

const std::vector<std::string>& tokenizer_kinds();
/// ConfigError before any work starts.
void check(const TokenizerRequest& request);

/// Looks at every piece of the corpus, then builds.
class TokenizerTrainer {
 public:
  explicit TokenizerTrainer(const TokenizerRequest& request);
  ~TokenizerTrainer();
  /// `split` of the document the piece belongs to. DataError on text that is not UTF-8.
  void look(const Piece& piece, Split split);
  /// DataError when the text is empty or too small for the requested vocabulary.
  std::unique_ptr<Tokenizer> build();
  /// False for bytes: no pass over the corpus is needed.
  bool needs_text() const { return request_.kind != "bytes"; }

 private:
  struct Sample;
  TokenizerRequest request_;
  std::vector<bool> seen_;  // chars: by code point
  std::unique_ptr<Sample> sample_;
};

/// Trains SentencePiece BPE with the flags that keep every character (docs/data.md).
std::string train_bpe_model(std::vector<std::string> texts, std::uint64_t vocabulary);

}  // namespace fathom::data
