// Every grid, by every method, against scalar evaluation of the definition with the same draws.
#include <gtest/gtest.h>

#include "exact/attention_setting.h"
#include "exact/gram_grid.h"
#include "exact/partition.h"
#include "exact/separation_rank.h"

namespace fathom::exact {
namespace {

constexpr std::uint32_t kPrime = 8388593;
constexpr std::uint64_t kSeed = 5;
using Element = PrimeField::Element;

/// y(a_m, s b_n) in scalars, drawing exactly what sample_matrices draws for `count` assignments.
class ScalarTruth {
 public:
  ScalarTruth(const RankSetting& setting, std::size_t count)
      : setting_(setting), field_(kPrime), weights_(kSeed, 4ull * kPrime, field_) {
    const bool attention = setting.family == Family::attention;
    const char a = attention ? setting.partition[setting.output_position] : '0';
    row_places_ = positions_of(setting.partition, a);
    column_places_ = positions_of(setting.partition, a == '0' ? '1' : '0');
    std::vector<Element> embedding;
    if (setting.embedding_rank != 0) {
      embedding = weights_.vector(setting.width * setting.embedding_rank);
    }
    dimension_ = attention ? setting.width : setting.inputs;
    FieldSampler rows(kSeed, 4ull * kPrime + 1, field_);
    FieldSampler columns(kSeed, 4ull * kPrime + 2, field_);
    rows_ = random_assignments(count, row_places_.size(), dimension_, embedding,
                               setting.embedding_rank, field_, rows);
    columns_ = random_assignments(count, column_places_.size(), dimension_, embedding,
                                  setting.embedding_rank, field_, columns);
    if (attention) {
      attention_ = random_attention_weights(setting.attention(), weights_);
    } else if (setting.family == Family::conv) {
      conv_ = random_conv_weights(setting.conv(), weights_);
    } else {
      recurrent_ = random_recurrent_weights(setting.recurrent(), weights_);
    }
  }

  Element value(std::size_t row, std::size_t column, Element scale) {
    std::vector<Element> x(setting_.positions * dimension_);
    for (std::size_t j = 0; j < row_places_.size(); ++j) {
      for (std::size_t a = 0; a < dimension_; ++a) {
        x[row_places_[j] * dimension_ + a] = rows_.at(row, j)[a];
      }
    }
    for (std::size_t j = 0; j < column_places_.size(); ++j) {
      for (std::size_t a = 0; a < dimension_; ++a) {
        x[column_places_[j] * dimension_ + a] = field_.multiply(scale, columns_.at(column, j)[a]);
      }
    }
    std::vector<Element> scratch(4096);
    if (setting_.family == Family::attention) {
      return attention_output(field_, setting_.attention(), attention_, x.data(), scratch.data());
    }
    if (setting_.family == Family::conv) {
      return conv_output(field_, setting_.conv(), conv_, pooling_order(setting_.conv()), x.data(),
                         scratch.data());
    }
    return recurrent_output(field_, setting_.recurrent(), recurrent_, x.data(), scratch.data());
  }

  const PrimeField& field() const { return field_; }

 private:
  RankSetting setting_;
  PrimeField field_;
  FieldSampler weights_;
  std::vector<std::size_t> row_places_, column_places_;
  std::size_t dimension_;
  Assignments rows_, columns_;
  AttentionWeights<Element> attention_;
  ConvWeights<Element> conv_;
  RecurrentWeights<Element> recurrent_;
};

std::vector<RankSetting> attention_settings() {
  std::vector<RankSetting> settings;
  for (std::size_t layers = 1; layers <= 4; ++layers) {
    for (const auto& [width, heads] : std::vector<std::pair<std::size_t, std::size_t>>{
             {1, 1}, {2, 1}, {2, 2}, {3, 1}, {3, 3}, {4, 1}, {4, 2}, {5, 1}, {6, 2}, {8, 4}}) {
      settings.push_back(attention(layers, width, heads, "0110", (layers + width) % 4));
      settings.back().output_component = width - 1;
    }
  }
  settings.push_back(attention(2, 16, 1, "00101", 4));
  settings.push_back(attention(3, 12, 3, "0111", 0));
  for (std::size_t i = 0; i < 40; i += 7) {
    settings.push_back(settings[i]);
    settings.back().residual = true;
  }
  settings.push_back(attention(3, 4, 2, "001", 1));
  settings.back().embedding_rank = 2;
  return settings;
}

TEST(Evaluation, GramAndDirectFormsAgreeWithTheDefinitionEntryByEntry) {
  constexpr std::size_t kSide = 11;
  for (const RankSetting& setting : attention_settings()) {
    ScalarTruth truth(setting, kSide);
    const auto gram = sample_matrices(setting, Method::gram, kPrime, kSeed, {kSide}).front();
    const auto direct = sample_matrices(setting, Method::direct, kPrime, kSeed, {kSide}).front();
    for (std::size_t i = 0; i < kSide; ++i) {
      for (std::size_t j = 0; j < kSide; ++j) {
        const double expected = truth.field().balanced(truth.value(i, j, 1));
        ASSERT_EQ(gram[i * kSide + j], expected) << setting.key() << " at " << i << "," << j;
        ASSERT_EQ(direct[i * kSide + j], expected) << setting.key() << " at " << i << "," << j;
      }
    }
  }
}

TEST(Evaluation, CausalMasksAgreeWithTheDefinition) {
  for (std::size_t layers = 1; layers <= 3; ++layers) {
    for (const char* partition : {"0011", "0101", "011010"}) {
      RankSetting setting = attention(layers, 4, 2, partition, std::string(partition).size() - 1);
      setting.causal = true;
      ScalarTruth truth(setting, 9);
      const auto direct = sample_matrices(setting, Method::direct, kPrime, kSeed, {9}).front();
      for (std::size_t i = 0; i < 81; ++i) {
        ASSERT_EQ(direct[i], truth.field().balanced(truth.value(i / 9, i % 9, 1))) << setting.key();
      }
    }
  }
}

/// The degree blocks add up to y at a scaling that interpolation never saw.
void expect_blocks_add_up(const RankSetting& setting, Method method, std::size_t blocks) {
  constexpr std::size_t kSide = 5;
  ScalarTruth truth(setting, kSide);
  const PrimeField& field = truth.field();
  const auto matrices =
      sample_matrices(setting, method, kPrime, kSeed, std::vector<std::size_t>(blocks, kSide));
  const Element scale = 424242;
  const Element square = field.multiply(scale, scale);
  for (std::size_t entry = 0; entry < kSide * kSide; ++entry) {
    Element sum = 0;
    for (std::size_t k = blocks; k-- > 0;) {
      sum = field.add(field.multiply(sum, square),
                      field.constant(static_cast<std::int64_t>(matrices[k][entry])));
    }
    ASSERT_EQ(sum, truth.value(entry / kSide, entry % kSide, scale)) << setting.key();
  }
}

TEST(Evaluation, DegreeBlocksAddUpToTheNetwork) {
  expect_blocks_add_up(attention(1, 3, 1, "0011", 3), Method::gram, 2);
  expect_blocks_add_up(attention(2, 4, 2, "0011", 3), Method::gram, 5);
  expect_blocks_add_up(attention(3, 4, 1, "00001111", 7), Method::gram, 14);
  expect_blocks_add_up(attention(3, 2, 1, "0110", 2), Method::direct, 14);
  expect_blocks_add_up(attention(4, 2, 2, "0011", 0), Method::gram, 41);
  RankSetting causal = attention(3, 2, 1, "0101", 3);
  causal.causal = true;
  expect_blocks_add_up(causal, Method::direct, 14);
}

TEST(Evaluation, CircuitsAgreeWithTheDefinition) {
  for (const Family family : {Family::conv, Family::recurrent}) {
    for (std::size_t variant = 0; variant < 3; ++variant) {
      RankSetting setting;
      setting.family = family;
      setting.layers = variant + 1;
      setting.width = 3 + variant;
      setting.inputs = 4;
      setting.positions = 8;
      setting.partition = "00101101";
      setting.pooling = variant == 1 ? Pooling::mirror : Pooling::contiguous;
      ScalarTruth truth(setting, 9);
      const auto grid = sample_matrices(setting, Method::direct, kPrime, kSeed, {9}).front();
      for (std::size_t i = 0; i < 81; ++i) {
        ASSERT_EQ(grid[i], truth.field().balanced(truth.value(i / 9, i % 9, 1))) << setting.key();
      }
    }
  }
}

TEST(Evaluation, OperationCountsMatchAHandCount) {
  // (2,4,1): x 16, then B x, T^T u, S v 16 each, the dot product 4; reductions 4 + 3 x 4 + 1 + 1.
  const OperationCount two = gram_operations(attention(2, 4, 1, "01", 0).attention());
  EXPECT_EQ(two.multiply_adds, 16 + 3 * 16 + 4);
  EXPECT_EQ(two.reductions, 4 + 3 * 4 + 1 + 1);
  // (3,4,1): x 16; T S 64, S' 40, T' 160, x 16; four products 64 and the dot product 4.
  const OperationCount three = gram_operations(attention(3, 4, 1, "01", 0).attention());
  EXPECT_EQ(three.multiply_adds, 16 + 64 + 40 + 160 + 16 + 64 + 4);
}

}  // namespace
}  // namespace fathom::exact
