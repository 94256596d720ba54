// Paired costs and their intervals.
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "probe/heads.h"
#include "probe/layer_class.h"
#include "probe/paired.h"

namespace fathom::probe {
namespace {

TEST(Paired, TheMeanIsThatOfTokensAndTheErrorThatOfWindows) {
  WindowSums sums;
  sums.add(2, 10);
  sums.add(6, 10);
  const Cost cost = estimate(sums);
  EXPECT_DOUBLE_EQ(cost.mean, 0.4);
  // Residuals -2 and 2: sqrt(2 (4 + 4)) / 20.
  EXPECT_DOUBLE_EQ(cost.error, 0.2);
  EXPECT_NEAR(cost.high - cost.mean, 12.7062 * 0.2, 1e-3);  // Student, one degree of freedom
  sums = {};
  sums.add(1, 4);
  EXPECT_TRUE(std::isnan(estimate(sums).error));
}

TEST(Paired, IntervalsHoldInNinetyFivePerCentOfResamplings) {
  // Windows of correlated tokens: a window's own level and noise on top.
  int held = 0;
  constexpr int kDraws = 400, kWindows = 12, kTokens = 30;
  constexpr double kTruth = 0.05;
  for (int draw = 0; draw < kDraws; ++draw) {
    const RandomStream stream(9, static_cast<std::uint64_t>(draw));
    WindowSums sums;
    std::uint64_t next = 0;
    for (int w = 0; w < kWindows; ++w) {
      const double level = kTruth + 0.03 * stream.normal(next++);
      double sum = 0;
      for (int t = 0; t < kTokens; ++t) sum += level + 0.2 * stream.normal(next++);
      sums.add(sum, kTokens);
    }
    const Cost cost = estimate(sums);
    held += cost.low <= kTruth && kTruth <= cost.high;
  }
  EXPECT_GE(held, 0.90 * kDraws);
  EXPECT_LE(held, 0.98 * kDraws);
}

TEST(Paired, RankCorrelationSharesTies) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4}, {10, 20, 30, 40}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3}, {3, 2, 1}), -1);
  EXPECT_NEAR(rank_correlation({1, 1, 2}, {1, 2, 3}), std::sqrt(0.75), 1e-12);
}

TEST(LayerClasses, FollowTheirBounds) {
  const auto cost = [](double mean, double reach) {
    return Cost{mean, reach / 2, mean - reach, mean + reach};
  };
  EXPECT_EQ(classify(cost(0, 0), 0), LayerClass::idle);
  EXPECT_EQ(classify(cost(0.0005, 0.001), 0.5), LayerClass::cheap);
  EXPECT_EQ(classify(cost(-0.05, 0.004), 0.5), LayerClass::harmful);
  EXPECT_EQ(classify(cost(0.1, 0.01), 0.5), LayerClass::working);
  EXPECT_EQ(classify(cost(0.3, 0.01), 0.5), LayerClass::important);
  EXPECT_EQ(classify(cost(7, 0.1), 0.5), LayerClass::critical);
  EXPECT_EQ(classify(cost(0.03, 0.05), 0.5), LayerClass::undecided);
  EXPECT_EQ(classify(Cost{0.1, NAN, NAN, NAN}, 0.5), LayerClass::undecided);
}

// ---- hand-written attention patterns: the scores are known in closed form

using Weights = std::vector<float>;

Weights pattern(std::int64_t tokens, const std::function<double(std::int64_t, std::int64_t)>& at) {
  Weights weights(static_cast<std::size_t>(tokens * tokens), 0.0f);
  for (std::int64_t i = 0; i < tokens; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      weights[static_cast<std::size_t>(i * tokens + j)] = static_cast<float>(at(i, j));
    }
  }
  return weights;
}

TEST(Heads, HandWrittenPatternsGetTheirRoles) {
  constexpr std::int64_t T = 41, S = 20, kFront = 1;
  const auto scores = [&](const Weights& w) {
    HeadScores s = score_head(w.data(), T, kFront, 0);
    const HeadScores repeated = score_head(w.data(), T, kFront, S);
    s.induction = repeated.induction;
    s.duplicate = repeated.duplicate;
    return s;
  };
  const HeadScores previous =
      scores(pattern(T, [](auto i, auto j) { return j == std::max<std::int64_t>(i - 1, 0); }));
  EXPECT_DOUBLE_EQ(previous.previous, 1);
  EXPECT_EQ(role_of(previous), HeadRole::previous);

  const HeadScores sink = scores(pattern(T, [](auto, auto j) { return j == 0; }));
  EXPECT_DOUBLE_EQ(sink.sink, 1);
  EXPECT_EQ(role_of(sink), HeadRole::sink);

  const HeadScores even =
      scores(pattern(T, [](auto i, auto) { return 1.0 / static_cast<double>(i + 1); }));
  EXPECT_NEAR(even.broad, 1, 1e-6);
  EXPECT_EQ(role_of(even), HeadRole::broad);

  const HeadScores induction =
      scores(pattern(T, [](auto i, auto j) { return i >= kFront + S ? j == i - S + 1 : j == 0; }));
  EXPECT_DOUBLE_EQ(induction.induction, 1);
  EXPECT_DOUBLE_EQ(induction.duplicate, 0);

  const HeadScores duplicate =
      scores(pattern(T, [](auto i, auto j) { return i >= kFront + S ? j == i - S : j == i; }));
  EXPECT_DOUBLE_EQ(duplicate.duplicate, 1);
  EXPECT_EQ(role_of(duplicate), HeadRole::duplicate);

  const HeadScores local = scores(pattern(T, [](auto i, auto j) {
    return i - j < 5 ? 1.0 / static_cast<double>(std::min<std::int64_t>(5, i + 1)) : 0.0;
  }));
  EXPECT_NEAR(local.local, 1, 1e-6);
  EXPECT_EQ(role_of(local), HeadRole::local);
}

TEST(Heads, OffsetsDelimitersAndSpanAreCountedByHand) {
  // Row i: half on itself, a quarter two back, a quarter on the first token.
  constexpr std::int64_t T = 4;
  const Weights w{1,     0,     0,    0,  //
                  0.25f, 0.5f,  0,    0,  // its two back lies before the text: 0.25 are missing
                  0.5f,  0,     0.5f, 0,  //
                  0.25f, 0.25f, 0,    0.5f};
  const std::vector<char> marks{0, 1, 1, 0};
  const HeadScores s = score_head(w.data(), T, 0, 0, marks);
  EXPECT_DOUBLE_EQ(s.self, (1 + 0.5 + 0.5 + 0.5) / 4);
  EXPECT_DOUBLE_EQ(s.second, (0.5 + 0.25) / 2);  // from the third token on
  EXPECT_DOUBLE_EQ(s.previous, (0.25 + 0 + 0) / 3);
  EXPECT_DOUBLE_EQ(s.sink, (0.25 + 0.5 + 0.25) / 3);
  EXPECT_DOUBLE_EQ(s.delimiter, (0.5 + 0.5 + 0.25) / 3);
  // Rows from the later half on: 2 back with 0.5; 3 back with 0.25 and 2 back with 0.25.
  EXPECT_DOUBLE_EQ(s.span, (1 + 1.25) / 2);
  EXPECT_TRUE(std::isnan(score_head(w.data(), T, 0, 0).delimiter));
}

TEST(Heads, DelimitersAreMarksAndLineEnds) {
  const auto tokenizer = data::make_byte_tokenizer();
  const std::vector<char> ids = delimiter_ids(*tokenizer);
  for (const char mark : std::string(".,;:!?()\"'\n"))
    EXPECT_EQ(ids[static_cast<unsigned char>(mark)], 1);
  for (const char other : std::string("aZ0 -"))
    EXPECT_EQ(ids[static_cast<unsigned char>(other)], 0);
}

TEST(Heads, TheRepeatedBlockHasDistinctTokensTwice) {
  Window window;
  for (TokenId id = 0; id < 30; ++id) window.inputs.push_back(id);
  window.targets.assign(30, -1);
  const std::vector<Window> text{window};
  std::int64_t repeat = 0;
  const auto made = repeated_windows(text, 1, 64, 2, repeat);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(repeat, 29);
  EXPECT_EQ(std::ssize(made[0].inputs), 1 + 2 * repeat);
  EXPECT_EQ(made[0].inputs[0], 0);
  for (std::int64_t i = 1; i <= repeat; ++i) {
    EXPECT_EQ(made[0].inputs[static_cast<std::size_t>(i)],
              made[0].inputs[static_cast<std::size_t>(i + repeat)]);
  }
}

}  // namespace
}  // namespace fathom::probe
