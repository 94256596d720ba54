// The held-out windows on which every model of a study is measured.
//
// Of the N = (tokens - 1) / context windows laid end to end from token 0, W = min(N, limit) are
// taken, window i at position context * floor(i * N / W): spread evenly over the documents, the
// same for every model, seed and batch size. Losses become bits per byte by
//
//   bits per byte = (sum of -ln p over all targets) / (ln 2 * bytes of text those targets are)
//
// which does not depend on the tokenizer. Memory: the positions are computed, nothing is stored.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/token_file.h"

namespace fathom::data {

class EvaluationSet {
 public:
  /// `limit_tokens` rounds down to whole windows (at least one). DataError when fewer than
  /// context + 1 tokens exist. The file must outlive the set.
  EvaluationSet(const TokenFile& file, std::uint64_t context, std::uint64_t limit_tokens);

  std::uint64_t windows() const { return windows_; }
  std::uint64_t context() const { return context_; }
  std::uint64_t target_tokens() const { return windows_ * context_; }
  std::uint64_t position(std::uint64_t window) const;

  /// Fills rows [first, first + rows) with rows = inputs.size() / context. Rows past the last
  /// window repeat window 0; the caller ignores them. Returns the rows that count.
  std::uint64_t read(std::uint64_t first, std::span<TokenId> inputs,
                     std::span<TokenId> targets) const;

  /// Bytes of text that the targets stand for; `token_bytes[id]` is Tokenizer::token_bytes().
  std::uint64_t target_bytes(std::span<const std::uint32_t> token_bytes) const;

 private:
  const TokenFile* file_;
  std::uint64_t context_;
  std::uint64_t available_;
  std::uint64_t windows_;
};

/// nats summed over all targets, to bits per byte of text.
double bits_per_byte(double total_nats, std::uint64_t target_bytes);

}  // namespace fathom::data
