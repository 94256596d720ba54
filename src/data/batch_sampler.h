// Which tokens a training step reads: position = f(seed, step, row), nothing else.
//
// Sample g = step * batch + row belongs to epoch e = g / W, where W is the number of windows of
// `context` tokens that fit. Epoch e lays W windows end to end from an offset s_e drawn in
// [0, context) and visits each once, in an order given by a keyed permutation P_e of [0, W):
//
//   position(g) = s_e + context * P_e(g mod W)
//
// so an epoch is without replacement, windows of one epoch never overlap, and window borders move
// between epochs. A window takes context + 1 tokens: targets are the inputs shifted by one.
//
// Less data: with `windows` set, all epochs read the same windows, that many out of the W that
// begin at multiples of context, chosen at random from the whole file and the same for every seed:
//
//   position(g) = context * Q(P_e(g mod windows)),  Q a fixed permutation of [0, W)
//
// No state and no memory: any worker may ask for any step, and a resumed run needs only its step.
#pragma once

#include <cstdint>
#include <span>

#include "data/token_file.h"

namespace fathom::data {

struct Sampling {
  std::uint64_t context = 0;
  std::uint64_t batch = 0;
  std::uint64_t seed = 0;
  std::uint64_t windows = 0;  // 0: the whole file
};

class BatchSampler {
 public:
  /// ConfigError when context or batch is zero or the file has fewer windows than asked for,
  /// DataError when fewer than context + 1 tokens exist; `name` is the token file in messages.
  BatchSampler(std::uint64_t tokens, Sampling sampling, const std::string& name = "token file");

  /// First token of the window that `row` of `step` reads; position + context < tokens.
  std::uint64_t position(std::uint64_t step, std::uint64_t row) const;
  std::uint64_t windows_per_epoch() const { return windows_; }
  /// Passes over the text done before `step` begins.
  double epochs_before(std::uint64_t step) const;
  const Sampling& sampling() const { return sampling_; }

  /// Fills batch * context inputs and targets, row by row.
  void read(const TokenFile& file, std::uint64_t step, std::span<TokenId> inputs,
            std::span<TokenId> targets) const;

 private:
  Sampling sampling_;
  std::uint64_t windows_;
  std::uint64_t all_windows_;
  std::uint64_t offsets_;  // how many offsets an epoch may start from
};

/// A pseudo-random permutation of [0, size) given by (seed, stream): the image of `index`.
std::uint64_t permute(std::uint64_t index, std::uint64_t size, std::uint64_t seed,
                      std::uint64_t stream);

/// inputs[i] = id at position + i, targets[i] = id at position + i + 1.
void read_window(const TokenFile& file, std::uint64_t position, std::span<TokenId> inputs,
                 std::span<TokenId> targets);

}  // namespace fathom::data
