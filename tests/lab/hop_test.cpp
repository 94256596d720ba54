// k-hop: the task against a second definition, the network by hard attention and on the engine.
#include <gtest/gtest.h>

#include "lab/hops/connectivity.h"
#include "lab/hops/hop_network.h"
#include "lab/hops/hop_task.h"

namespace fathom::lab {
namespace {

Characters text(const std::string& letters) {
  Characters characters;
  for (const char c : letters) characters.push_back(static_cast<std::uint8_t>(c - 'a'));
  return characters;
}

TEST(HopTask, AnswersByHand) {
  //                      0123456
  const auto sequence = text("abcabad");
  // One hop: a at 3 -> after a at 0: b; b at 4 -> after b at 1: c; a at 5 -> after a at 3: b.
  EXPECT_EQ(hop_answers(sequence, 1), (std::vector<int>{-1, -1, -1, 1, 2, 1, -1}));
  // Two hops: 3 -> 1 (a b, nowhere); 4 -> 2 (a c, nowhere); 5 -> 4 -> 2: c.
  EXPECT_EQ(hop_answers(sequence, 2), (std::vector<int>{-1, -1, -1, -1, -1, 2, -1}));
  EXPECT_EQ(hop_answers(sequence, 0), (std::vector<int>{0, 1, 2, 0, 1, 0, 3}));
}

TEST(HopTask, HopsCompose) {
  // Pointers of one hop, followed k times, by a table instead of a search.
  for (std::uint64_t index = 0; index < 20; ++index) {
    const Characters sequence = hop_sequence(60, 4, 3, index);
    std::vector<int> next(60, -1);
    std::vector<int> last(4, -1);
    for (int i = 0; i < 60; ++i) {
      const std::uint8_t c = sequence[static_cast<std::size_t>(i)];
      if (last[c] >= 0) next[static_cast<std::size_t>(i)] = last[c] + 1;
      last[c] = i;
      if (i > 0) {
        EXPECT_NE(sequence[static_cast<std::size_t>(i)], sequence[static_cast<std::size_t>(i - 1)]);
      }
    }
    for (std::size_t k = 0; k <= 9; ++k) {
      const std::vector<int> answers = hop_answers(sequence, k);
      for (int i = 0; i < 60; ++i) {
        int at = i;
        for (std::size_t hop = 0; hop < k && at >= 0; ++hop)
          at = next[static_cast<std::size_t>(at)];
        EXPECT_EQ(answers[static_cast<std::size_t>(i)],
                  at < 0 ? -1 : sequence[static_cast<std::size_t>(at)]);
      }
    }
  }
}

TEST(HopNetwork, DepthIsTheLogarithm) {
  const std::vector<std::size_t> depths{2, 3, 3, 4, 4, 4, 4, 5};
  for (std::size_t k = 1; k <= 8; ++k) EXPECT_EQ(hop_depth(k), depths[k - 1]);
  EXPECT_EQ(hop_depth(16), 6u);
}

TEST(HopNetwork, HardAttentionAnswersEveryPositionAndOneLayerLessDoesNot) {
  for (std::size_t k = 1; k <= 17; ++k) {
    const HopNetwork network = build_hop_network(k, hop_depth(k), 80, 3);
    const HopNetwork shorter = build_hop_network(k, hop_depth(k) - 1, 80, 3);
    EXPECT_EQ(network.layers.size(), hop_depth(k));
    bool fails = false;
    for (std::uint64_t index = 0; index < 20; ++index) {
      const Characters sequence = hop_sequence(80, 3, 1, index);
      const std::vector<int> truth = hop_answers(sequence, k);
      EXPECT_EQ(run_hard(network, sequence), truth) << k;
      fails |= run_hard(shorter, sequence) != truth;
    }
    EXPECT_TRUE(fails) << k;
  }
}

TEST(HopNetwork, TheEnginesSoftmaxGivesTheSameAnswers) {
  for (const std::size_t k : {1, 3, 6, 13}) {
    const HopNetwork network = build_hop_network(k, hop_depth(k), 60, 4);
    std::vector<Characters> sequences;
    for (std::uint64_t index = 0; index < 40; ++index) {
      sequences.push_back(hop_sequence(60, 4, 2, index));
    }
    const auto answers = run_engine(network, sequences, 32, {});
    ASSERT_EQ(answers.size(), sequences.size());
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      EXPECT_EQ(answers[s], hop_answers(sequences[s], k));
    }
  }
  // Too soft a softmax does not: the check can fail.
  const HopNetwork network = build_hop_network(3, 3, 60, 4);
  const Characters sequence = hop_sequence(60, 4, 2, 0);
  EXPECT_NE(run_engine(network, {sequence}, 0.01, {})[0], hop_answers(sequence, 3));
}

TEST(Connectivity, CyclesAreWhatTheySay) {
  for (const bool two : {false, true}) {
    const std::vector<Edge> edges = random_cycles(12, two, 1, 7);
    std::vector<std::int64_t> next(12, -1);
    for (const Edge& edge : edges) next[static_cast<std::size_t>(edge.from)] = edge.to;
    std::size_t length = 1;
    for (std::int64_t at = next[0]; at != 0; at = next[static_cast<std::size_t>(at)]) ++length;
    EXPECT_EQ(length, two ? 6u : 12u);
  }
}

TEST(Connectivity, PointerDoublingTellsOneCycleFromTwo) {
  EXPECT_EQ(connectivity_depth(8), 4u);
  EXPECT_EQ(connectivity_depth(9), 5u);
  for (const std::size_t vertices : {6, 8, 14, 32}) {
    for (std::uint64_t index = 0; index < 50; ++index) {
      for (const bool two : {false, true}) {
        EXPECT_EQ(
            run_connectivity(random_cycles(vertices, two, 1, index), connectivity_depth(vertices)),
            !two);
      }
    }
  }
}

}  // namespace
}  // namespace fathom::lab
