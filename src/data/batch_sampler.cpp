#include "data/batch_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/counts.h"
#include "core/error.h"
#include "core/random.h"

namespace fathom::data {
namespace {

// Streams of the sampler's seed; other users of the seed must choose other streams.
constexpr std::uint64_t kOffsetStream = 0x6f6666736574;        // "offset"
constexpr std::uint64_t kChoiceStream = 0x63686f696365;        // "choice", of seed 0
constexpr std::uint64_t kOrderStream = 0x6f72646572ull << 16;  // "order", plus the epoch

constexpr int kRounds = 6;

}  // namespace

/// A Feistel network on the next even number of bits, walked until it falls inside [0, size):
/// at most 4 turns on average, no table. Each round is a Philox block of (half, round).
std::uint64_t permute(std::uint64_t index, std::uint64_t size, std::uint64_t seed,
                      std::uint64_t stream) {
  if (index >= size) throw InternalError(fmt::format("permute: {} of {}", index, size));
  const int half_bits = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
  const std::uint64_t mask = (1ull << half_bits) - 1;
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed),
                                         static_cast<std::uint32_t>(seed >> 32)};
  std::uint64_t value = index;
  do {
    std::uint64_t left = value >> half_bits;
    std::uint64_t right = value & mask;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      // half_bits <= 32, so the half fits one counter word.
      const auto block =
          philox({static_cast<std::uint32_t>(right), round, static_cast<std::uint32_t>(stream),
                  static_cast<std::uint32_t>(stream >> 32)},
                 key);
      const std::uint64_t mixed = left ^ (block[0] & mask);
      left = right;
      right = mixed;
    }
    value = (left << half_bits) | right;
  } while (value >= size);
  return value;
}

BatchSampler::BatchSampler(std::uint64_t tokens, Sampling sampling, const std::string& name)
    : sampling_(sampling) {
  const std::uint64_t T = sampling.context;
  if (T == 0 || sampling.batch == 0) throw ConfigError("context and batch must be at least 1");
  if (tokens <= T) {
    throw DataError(
        fmt::format("{}: {} tokens are too few for a context of {}; it takes {}, or "
                    "a shorter context",
                    name, tokens, T, T + 1));
  }
  all_windows_ = std::max<std::uint64_t>(1, (tokens - T) / T);
  if (sampling.windows > all_windows_) {
    throw ConfigError(fmt::format("{}: has {} windows of {} tokens, not {}; train on less of it",
                                  name, all_windows_, T, sampling.windows));
  }
  const bool all = sampling.windows == 0;
  windows_ = all ? all_windows_ : sampling.windows;
  offsets_ = all ? std::min(T, tokens - windows_ * T) : 1;
}

std::uint64_t BatchSampler::position(std::uint64_t step, std::uint64_t row) const {
  const std::uint64_t sample = step * sampling_.batch + row;
  const std::uint64_t epoch = sample / windows_;
  const std::uint64_t offset = RandomStream(sampling_.seed, kOffsetStream).below(epoch, offsets_);
  std::uint64_t window = permute(sample % windows_, windows_, sampling_.seed, kOrderStream + epoch);
  if (sampling_.windows > 0) window = permute(window, all_windows_, 0, kChoiceStream);
  return offset + sampling_.context * window;
}

double BatchSampler::epochs_before(std::uint64_t step) const {
  return as_double(step) * as_double(sampling_.batch) / as_double(windows_);
}

void BatchSampler::read(const TokenFile& file, std::uint64_t step, std::span<TokenId> inputs,
                        std::span<TokenId> targets) const {
  const std::size_t T = sampling_.context;
  if (inputs.size() != sampling_.batch * T || targets.size() != inputs.size()) {
    throw InternalError("BatchSampler::read: buffers are not batch * context");
  }
  for (std::uint64_t row = 0; row < sampling_.batch; ++row) {
    read_window(file, position(step, row), inputs.subspan(row * T, T), targets.subspan(row * T, T));
  }
}

void read_window(const TokenFile& file, std::uint64_t position, std::span<TokenId> inputs,
                 std::span<TokenId> targets) {
  file.copy(position, inputs);
  file.copy(position + 1, targets);
}

}  // namespace fathom::data
