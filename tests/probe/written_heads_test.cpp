// Heads written by hand as weights of a GPT-2 of two layers: what each attends to is known in
// closed form, and the whole path from weights to scores and roles must give it back.
//
// A stream is (u, -u), so that LayerNorm only multiplies by s = sqrt(D / (2 |u|^2)), and u holds
// one-hot parts: the token, its place and, after layer 0, the token before. A head whose score is
// b for one key and 0 for the i others gives that key e^b / (e^b + i).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "pretrained/planted_model.h"
#include "probe/head_copying.h"
#include "probe/head_importance.h"
#include "probe/heads.h"

namespace fathom::probe {
namespace {

constexpr std::uint64_t kBlock = 12, kVocab = kBlock + 1, kPlaces = 2 * kBlock + 1;
constexpr std::uint64_t kD = 160, kHeads = 4, kK = kD / kHeads, kHalf = kD / 2;
constexpr std::uint64_t kToken = 0, kPlace = kVocab, kBefore = kVocab + kPlaces;
constexpr double kClear = 6, kCertain = 40;

class WrittenModel {
 public:
  WrittenModel() {
    model_.config = {{"model_type", "gpt2"},
                     {"n_embd", kD},
                     {"n_layer", 2},
                     {"n_head", kHeads},
                     {"n_positions", kPlaces},
                     {"vocab_size", kVocab},
                     {"n_inner", 4},
                     {"layer_norm_epsilon", 1e-12},
                     {"activation_function", "relu"}};
    for (std::uint64_t v = 0; v < kVocab; ++v) write("wte", v, kToken + v, 1, kVocab);
    for (std::uint64_t p = 0; p < kPlaces; ++p) write("wpe", p, kPlace + p, 1, kPlaces);
    norm("ln_f");
    for (int l = 0; l < 2; ++l) {
      const std::string at = fmt::format("h.{}.", l);
      norm(at + "ln_1");
      norm(at + "ln_2");
      matrix(at + "attn.c_attn", kD, 3 * kD);
      matrix(at + "attn.c_proj", kD, kD);
      matrix(at + "mlp.c_fc", kD, 4);
      matrix(at + "mlp.c_proj", 4, kD);
    }
    previous(0, 0, kCertain);
    for (std::uint64_t v = 0; v < kVocab; ++v) {  // it hands on the token it sees
      value(0, 0, kToken + v, v, 1 / scale(0));
      output(0, 0, v, kBefore + v);
    }
    duplicate(0, 1, kClear);
    for (std::uint64_t p = 0; p < kPlaces; ++p) query(0, 2, kPlace + p, 0, kClear);  // sink
    key(0, 2, kPlace, 0);
    for (std::uint64_t v = 0; v < kVocab; ++v) {  // induction: my token was before that one
      query(1, 0, kToken + v, v, kClear);
      key(1, 0, kBefore + v, v);
    }
    previous(1, 1, kClear);
  }

  pretrained::Weights weights() const { return model_.weights(); }

  /// The head hands on the token it sees, to where the logits are read.
  void copy(int layer, std::uint64_t head) {
    for (std::uint64_t v = 0; v < kVocab; ++v) {
      value(layer, head, kToken + v, v, 1 / scale(layer));
      output(layer, head, v, kToken + v);
    }
  }

 private:
  static double scale(int layer) {
    return std::sqrt(static_cast<double>(kD) / (2 * (layer == 0 ? 2 : 3)));
  }
  std::vector<float>& matrix(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    auto& tensor = model_.tensors["transformer." + name + ".weight"];
    if (tensor.values.empty()) tensor = {{rows, cols}, std::vector<float>(rows * cols, 0.0f)};
    return tensor.values;
  }
  void norm(const std::string& name) {
    model_.tensors["transformer." + name + ".weight"] = {{kD}, std::vector<float>(kD, 1.0f)};
    model_.tensors["transformer." + name + ".bias"] = {{kD}, std::vector<float>(kD, 0.0f)};
  }
  /// u[at] += value in a row of a table, with its mirror.
  void write(const std::string& name, std::uint64_t row, std::uint64_t at, double value,
             std::uint64_t rows) {
    std::vector<float>& values = matrix(name, rows, kD);
    values[row * kD + at] += static_cast<float>(value);
    values[row * kD + kHalf + at] -= static_cast<float>(value);
  }
  void attend(int layer, std::uint64_t part, std::uint64_t head, std::uint64_t from,
              std::uint64_t to, double value) {
    matrix(fmt::format("h.{}.attn.c_attn", layer), kD,
           3 * kD)[from * 3 * kD + part * kD + head * kK + to] += static_cast<float>(value);
  }
  /// Queries carry the score, undoing the norm's factor on both sides and 1 / sqrt(K).
  void query(int layer, std::uint64_t head, std::uint64_t from, std::uint64_t to, double score) {
    attend(layer, 0, head, from, to,
           score * std::sqrt(static_cast<double>(kK)) / (scale(layer) * scale(layer)));
  }
  void key(int layer, std::uint64_t head, std::uint64_t from, std::uint64_t to) {
    attend(layer, 1, head, from, to, 1);
  }
  void value(int layer, std::uint64_t head, std::uint64_t from, std::uint64_t to, double factor) {
    attend(layer, 2, head, from, to, factor);
  }
  void output(int layer, std::uint64_t head, std::uint64_t from, std::uint64_t to) {
    write(fmt::format("h.{}.attn.c_proj", layer), head * kK + from, to, 1, kD);
  }
  void previous(int layer, std::uint64_t head, double score) {
    for (std::uint64_t p = 0; p < kPlaces; ++p) {
      if (p > 0) query(layer, head, kPlace + p, p - 1, score);
      key(layer, head, kPlace + p, p);
    }
  }
  /// The same token elsewhere: matching places take the token's score back.
  void duplicate(int layer, std::uint64_t head, double score) {
    for (std::uint64_t v = 0; v < kVocab; ++v) {
      query(layer, head, kToken + v, v, score);
      key(layer, head, kToken + v, v);
    }
    for (std::uint64_t p = 0; p < kPlaces; ++p) {
      query(layer, head, kPlace + p, kVocab + p, -score);
      key(layer, head, kPlace + p, kVocab + p);
    }
  }

  pretrained::PlantedModel model_;
};

std::vector<Window> written_text() {
  std::vector<Window> list;
  for (std::uint64_t w = 0; w < 3; ++w) {
    Window window;
    window.inputs = pretrained::planted_ids(kPlaces, kBlock, w);
    window.inputs.front() = kBlock;  // begins every text
    window.targets.assign(window.inputs.begin() + 1, window.inputs.end());
    window.targets.push_back(-1);
    list.push_back(std::move(window));
  }
  return list;
}

/// Mean over queries [first, last] of e^b / (e^b + i).
double closed_form(double b, std::int64_t first, std::int64_t last) {
  double sum = 0;
  for (std::int64_t i = first; i <= last; ++i) {
    sum += std::exp(b) / (std::exp(b) + static_cast<double>(i));
  }
  return sum / static_cast<double>(last - first + 1);
}

TEST(WrittenHeads, ScoresAreTheClosedFormsAndRolesFollow) {
  const WrittenModel model;
  pretrained::Weights weights = model.weights();
  Sweep sweep(weights, {});
  const std::vector<Window> text = written_text();
  std::int64_t repeat = 0;
  const auto repeated = repeated_windows(text, 1, weights.layout().context, 4, repeat);
  ASSERT_EQ(repeat, static_cast<std::int64_t>(kBlock));
  auto heads = measure_heads(sweep, text, repeated, 1, repeat);
  ASSERT_EQ(heads.size(), 2 * kHeads);
  constexpr std::int64_t kLast = kPlaces - 1, kSecond = kBlock + 1;

  EXPECT_NEAR(heads[0].scores.previous, 1, 1e-6);
  EXPECT_EQ(heads[0].role, HeadRole::previous);
  EXPECT_NEAR(heads[1].scores.duplicate, closed_form(kClear, kSecond, kLast), 1e-5);
  EXPECT_EQ(heads[1].role, HeadRole::duplicate);
  EXPECT_NEAR(heads[2].scores.sink, closed_form(kClear, 1, kLast), 1e-5);
  EXPECT_EQ(heads[2].role, HeadRole::sink);
  EXPECT_NEAR(heads[3].scores.broad, 1, 1e-6);
  EXPECT_EQ(heads[3].role, HeadRole::broad);
  EXPECT_NEAR(heads[4].scores.induction, closed_form(kClear, kSecond, kLast), 1e-5);
  EXPECT_EQ(heads[4].role, HeadRole::induction);
  EXPECT_NEAR(heads[5].scores.previous, closed_form(kClear, 1, kLast), 1e-5);
  EXPECT_EQ(heads[5].role, HeadRole::previous);
}

/// Head 0 of layer 1 hands its token on where the logits are read: it copies. Its twin in layer 0
/// writes to a place that no logit reads.
TEST(WrittenHeads, AHeadThatCopiesIsFoundByItsWeights) {
  WrittenModel model;
  model.copy(1, 0);
  pretrained::Weights weights = model.weights();
  Sweep sweep(weights, {});
  const std::vector<Window> text = written_text();
  std::int64_t repeat = 0;
  const auto repeated = repeated_windows(text, 1, weights.layout().context, 1, repeat);
  auto heads = measure_heads(sweep, text, repeated, 1, repeat);
  EXPECT_TRUE(std::isnan(heads[4].scores.copying));
  measure_head_copying(sweep, repeated.front(), 1, heads);
  EXPECT_NEAR(heads[4].scores.copying, 1, 1e-5);
  EXPECT_NEAR(heads[4].scores.copying_positive, 1, 1e-5);
  EXPECT_NEAR(heads[0].scores.copying, 0, 1e-5);
}

/// The heads that look at the token before, one in each layer, removed at once.
TEST(WrittenHeads, HeadsOfARoleAreRemovedTogether) {
  WrittenModel model;
  model.copy(1, 1);
  pretrained::Weights weights = model.weights();
  Sweep sweep(weights, {});
  const std::vector<Window> text = written_text();
  auto heads = measure_heads(sweep, text, {}, 1, 0);
  measure_head_importance(sweep, text, heads);
  measure_head_removals(sweep, text, heads.size(), heads);
  const std::vector<RoleRemoval> removals = measure_role_removals(sweep, text, heads);
  const auto previous = std::find_if(removals.begin(), removals.end(), [](const RoleRemoval& each) {
    return each.role == HeadRole::previous;
  });
  ASSERT_NE(previous, removals.end());
  EXPECT_EQ(previous->heads, 2);  // of layer 0 and of layer 1
  // The same by hand: both silent in one variant of the sweep.
  Variant both{0, {{0, {}, {}}, {1, {}, {}}}};
  both.steps[0].edit.silent = {{0}};
  both.steps[1].edit.silent = {{1}};
  double difference = 0, tokens = 0;
  sweep.run(text, whole_path(2), {both},
            [&](std::size_t w, const WindowStreams&, const WindowLosses& losses) {
              for (std::size_t i = 0; i < losses.base.size(); ++i) {
                difference += static_cast<double>(losses.variants[0][i]) - losses.base[i];
              }
              tokens += static_cast<double>(text[w].target_count());
            });
  EXPECT_NEAR(previous->removal.mean, difference / tokens, 1e-9);
  EXPECT_GT(std::abs(previous->removal.mean), 1e-4);
}

TEST(WrittenHeads, OnlyTheHeadThatWritesMatters) {
  const WrittenModel model;
  pretrained::Weights weights = model.weights();
  Sweep sweep(weights, {});
  const std::vector<Window> text = written_text();
  auto heads = measure_heads(sweep, text, {}, 1, 0);
  measure_head_importance(sweep, text, heads);
  measure_head_removals(sweep, text, heads.size(), heads);
  // It writes a unit vector beside two others: sqrt(2) / sqrt(4) of the stream before it.
  EXPECT_NEAR(heads[0].contribution, std::sqrt(0.5), 1e-5);
  EXPECT_GT(heads[0].importance.value(), 0);
  for (std::size_t h = 1; h < heads.size(); ++h) {
    EXPECT_EQ(heads[h].contribution, 0);
    EXPECT_EQ(heads[h].importance.value(), 0);
    EXPECT_EQ(heads[h].removal.value().mean, 0);
  }
}

}  // namespace
}  // namespace fathom::probe
