// From a corpus to token files, in one pass (bytes) or two (chars, bpe).
//
// Pieces are read in order, encoded on several threads and written in order: the result does not
// depend on the number of threads. Memory is bounded by a batch of 4 MiB of text and its ids per
// thread, plus the tokenizer's training sample. A second pass over a stream that cannot be read
// twice reads a temporary copy in the output folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/split.h"
#include "data/token_file.h"
#include "data/token_set.h"
#include "data/tokenizer_training.h"

namespace fathom::data {

struct PrepareRequest {
  std::vector<CorpusSource> sources;
  std::filesystem::path output;
  DocumentRule documents;
  SplitRule split;
  TokenizerRequest tokenizer;
  /// Take the tokenizer of another prepared corpus instead of building one.
  std::optional<std::filesystem::path> tokenizer_from;
  unsigned threads = 1;
};

struct PrepareReport {
  BySplit<TokenFileInfo> splits;
  Hash128 hash;
  Hash128 tokenizer;
  std::uint64_t vocabulary = 0;
  double seconds_tokenizer = 0;  // reading for the tokenizer and training it
  double seconds_encode = 0;     // reading, encoding, writing
};

/// `fraction` of the stage, below 0 when unknown; `text_bytes` done in this stage.
using PrepareProgress =
    std::function<void(const std::string& stage, double fraction, std::uint64_t text_bytes)>;

/// ConfigError or DataError before anything is written when the request or the corpus is wrong.
/// A preparation that fails or is killed leaves an earlier token set in the folder as it was; a
/// kill during the last renames leaves a folder that TokenSet refuses.
PrepareReport prepare(const PrepareRequest& request, const PrepareProgress& progress = {});

}  // namespace fathom::data
