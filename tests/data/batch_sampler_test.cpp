#include "data/batch_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>
#include <numeric>
#include <set>
#include <vector>

#include "core/error.h"
#include "data/evaluation_set.h"
#include "scratch_folder.h"

namespace fathom::data {
namespace {

TEST(Permute, IsAPermutationForEverySize) {
  for (const std::uint64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097}) {
    std::set<std::uint64_t> images;
    std::uint64_t fixed = 0;
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t image = permute(i, size, 1, 2);
      EXPECT_LT(image, size);
      fixed += image == i;
      images.insert(image);
    }
    EXPECT_EQ(images.size(), size);
    // The number of fixed points of a random permutation is near Poisson(1).
    EXPECT_TRUE(size < 1000 || fixed < 12) << fixed;
  }
  EXPECT_LT(permute(5, ~0ull, 1, 2), ~0ull);
  EXPECT_THROW(permute(3, 3, 0, 0), InternalError);
}

TEST(Permute, SpreadsNeighbours) {
  // The mean distance of images of neighbours under a random permutation is size / 3.
  constexpr std::uint64_t size = 5000;
  double sum = 0;
  for (std::uint64_t i = 0; i + 1 < size; ++i) {
    const auto a = static_cast<double>(permute(i, size, 3, 4));
    const auto b = static_cast<double>(permute(i + 1, size, 3, 4));
    sum += std::abs(a - b);
  }
  EXPECT_NEAR(sum / (size - 1), size / 3.0, size * 0.02);
}

TEST(BatchSampler, AnEpochReadsEveryWindowOnceWithoutOverlap) {
  constexpr std::uint64_t T = 8, tokens = 1003, batch = 3;
  const BatchSampler sampler(tokens, {T, batch, 42});
  const std::uint64_t W = sampler.windows_per_epoch();
  EXPECT_EQ(W, (tokens - T) / T);
  std::set<std::uint64_t> offsets;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    std::set<std::uint64_t> starts;
    for (std::uint64_t g = epoch * W; g < (epoch + 1) * W; ++g) {
      const std::uint64_t position = sampler.position(g / batch, g % batch);
      EXPECT_LT(position + T, tokens);
      starts.insert(position);
      offsets.insert(position % T);
    }
    EXPECT_EQ(starts.size(), W);
    EXPECT_EQ(*starts.rbegin() - *starts.begin(), (W - 1) * T);
  }
  EXPECT_GT(offsets.size(), 5u);  // borders move between epochs
  EXPECT_DOUBLE_EQ(sampler.epochs_before(W), static_cast<double>(batch));
}

TEST(BatchSampler, IsAPureFunctionWithFixedValues) {
  const BatchSampler sampler(1'000'000, {256, 16, 1});
  const BatchSampler other(1'000'000, {256, 16, 2});
  std::vector<std::uint64_t> forward, backward;
  for (int i = 0; i < 64; ++i) forward.push_back(sampler.position(i / 16, i % 16));
  for (int i = 63; i >= 0; --i) backward.push_back(sampler.position(i / 16, i % 16));
  EXPECT_TRUE(std::equal(forward.begin(), forward.end(), backward.rbegin()));
  EXPECT_NE(forward[0], other.position(0, 0));
  // Frozen: a change here would change every training run that names this seed.
  EXPECT_EQ(forward[0], 77166u);
  EXPECT_EQ(forward[63], 622958u);
}

TEST(BatchSampler, AnAmountOfDataIsTheSameWindowsInEveryEpochAndForEverySeed) {
  constexpr std::uint64_t T = 8, tokens = 100003, windows = 50;
  const auto windows_of = [&](const BatchSampler& sampler, std::uint64_t epoch) {
    std::vector<std::uint64_t> starts;
    for (std::uint64_t g = epoch * windows; g < (epoch + 1) * windows; ++g) {
      starts.push_back(sampler.position(g / 5, g % 5));
      EXPECT_EQ(starts.back() % T, 0u);
      EXPECT_LT(starts.back() + T, tokens);
    }
    return starts;
  };
  const BatchSampler one(tokens, {T, 5, 1, windows});
  const BatchSampler two(tokens, {T, 5, 2, windows});
  std::vector<std::uint64_t> first = windows_of(one, 0);
  std::vector<std::uint64_t> other = windows_of(two, 3);
  EXPECT_NE(first, other);  // another order
  std::sort(first.begin(), first.end());
  std::sort(other.begin(), other.end());
  EXPECT_EQ(first, other);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), windows);
  EXPECT_GT(first.back() - first.front(), tokens / 2);  // from all over the file
  const BatchSampler more(tokens, {T, 5, 1, 2 * windows});
  for (std::uint64_t g = 0; g < 2 * windows; ++g) {  // more data holds the less
    std::erase(first, more.position(g / 5, g % 5));
  }
  EXPECT_TRUE(first.empty());
  EXPECT_THROW(BatchSampler(tokens, {T, 5, 1, tokens}), ConfigError);
}

TEST(BatchSampler, TinyFilesAndWrongRequests) {
  for (const std::uint64_t tokens : {9ull, 10ull, 15ull, 16ull, 17ull, 24ull, 25ull}) {
    const BatchSampler sampler(tokens, {8, 2, 0});
    for (std::uint64_t step = 0; step < 50; ++step) {
      EXPECT_LT(sampler.position(step, 1) + 8, tokens) << tokens;
    }
  }
  const std::string error = error_of<DataError>([] { BatchSampler(8, {8, 1, 0}, "valid.tokens"); });
  EXPECT_EQ(
      error,
      "valid.tokens: 8 tokens are too few for a context of 8; it takes 9, or a shorter context");
  EXPECT_THROW(BatchSampler(100, {0, 1, 0}), ConfigError);
  EXPECT_THROW(BatchSampler(100, {1, 0, 0}), ConfigError);
}

class CountingFile : public ::testing::Test {
 protected:
  CountingFile() {
    std::vector<TokenId> ids(1000);
    std::iota(ids.begin(), ids.end(), 0);
    TokenFileWriter writer(folder_ / "x.tokens", 1000, {});
    writer.add(ids);
    writer.commit();
  }
  ScratchFolder folder_;
};

TEST_F(CountingFile, TargetsAreInputsShiftedByOne) {
  const TokenFile file(folder_ / "x.tokens");
  const BatchSampler sampler(file.size(), {16, 4, 5});
  std::vector<TokenId> inputs(64), targets(64);
  sampler.read(file, 3, inputs, targets);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(inputs[row * 16 + i], static_cast<TokenId>(sampler.position(3, row) + i));
      EXPECT_EQ(targets[row * 16 + i], inputs[row * 16 + i] + 1);
    }
  }
  EXPECT_THROW(sampler.read(file, 0, std::span(inputs).first(63), targets), InternalError);
}

TEST_F(CountingFile, EvaluationSpreadsFixedWindows) {
  const TokenFile file(folder_ / "x.tokens");
  const EvaluationSet all(file, 10, ~0ull);
  EXPECT_EQ(all.windows(), 99u);
  EXPECT_EQ(all.position(98), 980u);
  const EvaluationSet few(file, 10, 45);
  EXPECT_EQ(few.windows(), 4u);  // of 99: floor(i * 99 / 4) = 0, 24, 49, 74
  EXPECT_EQ(few.position(1), 240u);
  EXPECT_EQ(few.position(2), 490u);
  EXPECT_EQ(few.position(3), 740u);
  std::vector<TokenId> inputs(30), targets(30);
  EXPECT_EQ(few.read(3, inputs, targets), 1u);  // one real row, two of padding
  EXPECT_EQ(inputs[0], 740);
  EXPECT_EQ(targets[9], 750);
  EXPECT_EQ(inputs[10], 0);
  EXPECT_EQ(EvaluationSet(file, 10, 0).windows(), 1u);
  EXPECT_THROW(EvaluationSet(file, 1000, 10), DataError);
}

TEST_F(CountingFile, BitsPerByteCountsTheTargetsOnly) {
  const TokenFile file(folder_ / "x.tokens");
  std::vector<std::uint32_t> token_bytes(1000, 2);
  token_bytes[1] = 7;   // first target of the first window
  token_bytes[0] = 99;  // never a target
  const EvaluationSet set(file, 10, 20);
  const std::uint64_t bytes = set.target_bytes(token_bytes);
  EXPECT_EQ(bytes, 20u * 2 + 5);
  // Half a bit per byte: 45 bytes at ln 2 / 2 nats each.
  EXPECT_DOUBLE_EQ(bits_per_byte(45 * std::numbers::ln2 / 2, bytes), 0.5);
  EXPECT_THROW(set.target_bytes(std::span(token_bytes).first(999)), InternalError);
}

}  // namespace
}  // namespace fathom::data
