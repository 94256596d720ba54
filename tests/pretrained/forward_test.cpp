// The forward pass against plain sums in double precision, written from the formulas of layout.h.
#include "pretrained/forward.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "pretrained/planted_model.h"

namespace fathom::pretrained {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows product(const Rows& x, const std::vector<float>& w, std::size_t outs) {
  Rows y;
  for (const auto& row : x) {
    std::vector<double> out(outs, 0.0);
    for (std::size_t o = 0; o < outs; ++o) {
      for (std::size_t i = 0; i < row.size(); ++i) out[o] += row[i] * w[o * row.size() + i];
    }
    y.push_back(out);
  }
  return y;
}

Rows rms(const Rows& x, const std::vector<float>& gain, double epsilon) {
  Rows y = x;
  for (auto& row : y) {
    double square = 0;
    for (const double v : row) square += v * v;
    const double s = 1 / std::sqrt(square / static_cast<double>(row.size()) + epsilon);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] *= s * gain[i];
  }
  return y;
}

/// Half-style rotation of every head of a row of queries or keys.
void rotate(Rows& x, std::size_t heads, double theta) {
  for (std::size_t t = 0; t < x.size(); ++t) {
    const std::size_t K = x[t].size() / heads;
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t j = 0; j < K / 2; ++j) {
        const double angle =
            static_cast<double>(t) *
            std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(K));
        double& a = x[t][h * K + j];
        double& b = x[t][h * K + j + K / 2];
        const double a0 = a, b0 = b;
        a = a0 * std::cos(angle) - b0 * std::sin(angle);
        b = b0 * std::cos(angle) + a0 * std::sin(angle);
      }
    }
  }
}

Rows attention(const Rows& q, const Rows& k, const Rows& v, std::size_t H, std::size_t G,
               std::size_t window) {
  const std::size_t K = q[0].size() / H;
  Rows y(q.size(), std::vector<double>(H * K, 0.0));
  for (std::size_t h = 0; h < H; ++h) {
    const std::size_t g = h * G / H;
    for (std::size_t i = 0; i < q.size(); ++i) {
      std::vector<double> weight(i + 1, 0.0);
      double sum = 0;
      for (std::size_t j = window > 0 && i + 1 > window ? i + 1 - window : 0; j <= i; ++j) {
        double score = 0;
        for (std::size_t c = 0; c < K; ++c) score += q[i][h * K + c] * k[j][g * K + c];
        weight[j] = std::exp(score / std::sqrt(static_cast<double>(K)));
        sum += weight[j];
      }
      for (std::size_t j = 0; j <= i; ++j) {
        for (std::size_t c = 0; c < K; ++c) y[i][h * K + c] += weight[j] / sum * v[j][g * K + c];
      }
    }
  }
  return y;
}

void add(Rows& x, const Rows& y) {
  for (std::size_t t = 0; t < x.size(); ++t) {
    for (std::size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
  }
}

/// A LLaMA model, by the book.
Rows reference_logits(PlantedModel& m, const PlantedSize& s, const std::vector<data::TokenId>& ids,
                      std::size_t window) {
  const double eps = 1e-5;
  const std::size_t D = s.width, K = D / s.heads;
  Rows x;
  for (const data::TokenId id : ids) {
    const auto begin =
        m.at("model.embed_tokens.weight").begin() + id * static_cast<std::ptrdiff_t>(D);
    x.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(D));
  }
  for (std::size_t l = 0; l < s.layers; ++l) {
    const auto layer = static_cast<std::int64_t>(l);
    const Rows n = rms(x, m.layer(layer, "input_layernorm"), eps);
    Rows q = product(n, m.layer(layer, "self_attn.q_proj"), D);
    Rows k = product(n, m.layer(layer, "self_attn.k_proj"), s.key_heads * K);
    const Rows v = product(n, m.layer(layer, "self_attn.v_proj"), s.key_heads * K);
    rotate(q, s.heads, 10000);
    rotate(k, s.key_heads, 10000);
    add(x, product(attention(q, k, v, s.heads, s.key_heads, window),
                   m.layer(layer, "self_attn.o_proj"), D));
    const Rows f = rms(x, m.layer(layer, "post_attention_layernorm"), eps);
    Rows gate = product(f, m.layer(layer, "mlp.gate_proj"), s.ffn);
    const Rows up = product(f, m.layer(layer, "mlp.up_proj"), s.ffn);
    for (std::size_t t = 0; t < gate.size(); ++t) {
      for (std::size_t i = 0; i < s.ffn; ++i) {
        gate[t][i] = gate[t][i] / (1 + std::exp(-gate[t][i])) * up[t][i];
      }
    }
    add(x, product(gate, m.layer(layer, "mlp.down_proj"), D));
  }
  return product(rms(x, m.at("model.norm.weight"), eps), m.at("lm_head.weight"), s.vocab);
}

std::vector<float> logits_of(const PlantedModel& m, const std::vector<data::TokenId>& ids) {
  Weights weights = m.weights();
  const Forward forward(weights, std::ssize(ids));
  Scratch scratch;
  const Layout& layout = weights.layout();
  std::vector<float> h(ids.size() * static_cast<std::size_t>(layout.width));
  forward.embed(ids, h.data());
  for (std::int64_t l = 0; l < layout.depth(); ++l) {
    forward.run_layer(*weights.layer(l), l, h.data(), scratch);
  }
  std::vector<float> logits(ids.size() * static_cast<std::size_t>(layout.vocab));
  forward.logits(h.data(), std::ssize(ids), scratch, logits.data());
  return logits;
}

TEST(Forward, LlamaWithGroupedHeadsMatchesTheFormulas) {
  const PlantedSize size;
  PlantedModel m = random_llama(size);
  const auto ids = planted_ids(19, size.vocab, 3);
  for (const std::size_t window : {std::size_t{0}, std::size_t{5}}) {
    if (window > 0) {
      m.config["model_type"] = "mistral";
      m.config["sliding_window"] = window;
    }
    const Rows expected = reference_logits(m, size, ids, window);
    const std::vector<float> logits = logits_of(m, ids);
    for (std::size_t t = 0; t < ids.size(); ++t) {
      for (std::size_t v = 0; v < size.vocab; ++v) {
        ASSERT_NEAR(logits[t * size.vocab + v], expected[t][v], 2e-4) << window << " " << t;
      }
    }
  }
}

TEST(Forward, GroupedHeadsEqualFullHeadsWithCopiedKeys) {
  PlantedSize size;
  PlantedModel m = random_llama(size);
  const auto ids = planted_ids(17, size.vocab, 4);
  const std::vector<float> grouped = logits_of(m, ids);
  m.config["num_key_value_heads"] = size.heads;
  for (std::uint64_t l = 0; l < size.layers; ++l) {
    for (const char* part : {"k_proj", "v_proj"}) {
      auto& tensor = m.tensors.at(fmt::format("model.layers.{}.self_attn.{}.weight", l, part));
      const std::size_t head = size.width / size.heads * size.width;
      std::vector<float> full;
      for (std::size_t h = 0; h < size.heads; ++h) {
        const auto begin = tensor.values.begin() +
                           static_cast<std::ptrdiff_t>(h * size.key_heads / size.heads * head);
        full.insert(full.end(), begin, begin + static_cast<std::ptrdiff_t>(head));
      }
      tensor = {{size.width, size.width}, full};
    }
  }
  EXPECT_EQ(logits_of(m, ids), grouped);
}

TEST(Forward, RotaryKindsMatchTheirFormulas) {
  RotarySpec s;
  s.size = 8;
  s.kind = RotaryKind::linear;
  s.factor = 4;
  s.original_context = 64;
  EXPECT_DOUBLE_EQ(rotary_table(s, 16).inverse[1], std::pow(10000.0, -0.25) / 4);
  s.kind = RotaryKind::llama3;
  s.factor = 8;
  const auto llama3 = rotary_table(s, 16).inverse;
  EXPECT_DOUBLE_EQ(llama3[0], 1);                             // a wave of 6.3 < 64 / 4
  EXPECT_DOUBLE_EQ(llama3[3], std::pow(10000.0, -0.75) / 8);  // far longer than 64
  s.kind = RotaryKind::yarn;
  s.factor = 4;
  EXPECT_NEAR(rotary_table(s, 16).amplitude, 0.1 * std::log(4.0) + 1, 1e-12);
  EXPECT_DOUBLE_EQ(rotary_table(s, 16).inverse[3], std::pow(10000.0, -0.75) / 4);
  s.kind = RotaryKind::dynamic;
  EXPECT_DOUBLE_EQ(rotary_table(s, 64).inverse[1], std::pow(10000.0, -0.25));
  EXPECT_LT(rotary_table(s, 128).inverse[1], std::pow(10000.0, -0.25));
  s.kind = RotaryKind::longrope;
  s.short_factors = {1, 2, 3, 4};
  s.long_factors = {5, 6, 7, 8};
  EXPECT_DOUBLE_EQ(rotary_table(s, 64).inverse[1], std::pow(10000.0, -0.25) / 2);
  EXPECT_DOUBLE_EQ(rotary_table(s, 65).inverse[1], std::pow(10000.0, -0.25) / 6);
  EXPECT_NEAR(rotary_table(s, 64).amplitude, std::sqrt(1 + std::log(4.0) / std::log(64.0)), 1e-12);
}

TEST(Forward, BadCheckpointsAreRefusedByName) {
  const auto message = [](const PlantedModel& m) {
    try {
      Weights weights = m.weights();
      for (std::int64_t l = 0; l < weights.layout().depth(); ++l) weights.layer(l);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  PlantedModel m = random_llama();
  EXPECT_EQ(message(m), "");
  PlantedModel bad = m;
  bad.tensors.erase("model.layers.2.mlp.up_proj.weight");
  EXPECT_NE(message(bad).find("lacks model.layers.2.mlp.up_proj.weight"), std::string::npos);
  bad = m;
  bad.layer(1, "self_attn.q_proj")[5] = NAN;
  EXPECT_NE(message(bad).find("model.layers.1.self_attn.q_proj.weight holds a number"),
            std::string::npos);
  bad = m;
  bad.draw("model.layers.0.mlp.experts.weight", {4}, 1);
  EXPECT_NE(message(bad).find("model.layers.0.mlp.experts.weight has no place"), std::string::npos);
  bad = m;
  bad.config["vocab_size"] = 30;
  EXPECT_NE(message(bad).find("has shape [29, 32]"), std::string::npos);
  bad = m;
  bad.config["model_type"] = "mamba";
  EXPECT_NE(message(bad).find("'mamba' is not known"), std::string::npos);
  bad = m;
  bad.config["rope_scaling"] = {{"rope_type", "spiral"}, {"factor", 2}};
  EXPECT_NE(message(bad).find("'spiral' is not known"), std::string::npos);
  bad = m;
  bad.config["hidden_size"] = "wide";
  EXPECT_NE(message(bad).find("'hidden_size'"), std::string::npos);
}

TEST(Forward, StreamedLayersGiveTheSameBits) {
  const PlantedModel m = random_llama();
  const auto ids = planted_ids(12, 29, 5);
  Weights streamed(m.checkpoint(), 1);
  EXPECT_FALSE(streamed.resident());
  Weights whole = m.weights();
  EXPECT_TRUE(whole.resident());
  for (std::int64_t l : {0, 3, 1, 2, 0}) {
    EXPECT_EQ(streamed.layer(l)->qkv.values, whole.layer(l)->qkv.values);
  }
}

}  // namespace
}  // namespace fathom::pretrained
