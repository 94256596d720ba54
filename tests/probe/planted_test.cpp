// Planted truths: layers that do nothing, copies, scaled layers, edits that leave the function as
// it is. What the probe reports is known beforehand.
#include <gtest/gtest.h>

#include "pretrained/planted_model.h"
#include "probe/curves.h"
#include "probe/probe.h"
#include "probe/removals.h"

namespace fathom::probe {
namespace {

using pretrained::planted_ids;
using pretrained::PlantedModel;
using pretrained::PlantedSize;
using pretrained::random_llama;

ProbeText planted_text(std::size_t windows = 6, std::size_t tokens = 24, std::size_t vocab = 29) {
  ProbeText text;
  text.name = "planted";
  for (std::size_t w = 0; w < windows; ++w) {
    Window window;
    window.inputs = planted_ids(tokens, vocab, 100 + w);
    window.targets.assign(window.inputs.begin() + 1, window.inputs.end());
    window.targets.push_back(-1);
    text.windows.push_back(std::move(window));
  }
  return text;
}

ProbeResult probe_planted(const PlantedModel& model, const ProbeText& text, unsigned threads = 1) {
  pretrained::Weights weights = model.weights();
  ProbeOptions options;
  options.threads = threads;
  options.fixed_tokens = true;
  return probe_model(weights, text, "planted", options);
}

void silence(PlantedModel& model, std::int64_t layer) {
  for (const char* part : {"self_attn.o_proj", "mlp.down_proj"}) {
    for (float& w : model.layer(layer, part)) w = 0;
  }
}

/// The weights of one layer in another's place.
void copy_layer(PlantedModel& model, std::int64_t from, std::int64_t to) {
  for (const char* part :
       {"input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj",
        "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    model.layer(to, part) = model.layer(from, part);
  }
}

TEST(Planted, AnIdentityLayerCostsExactlyNothingAndIsCalledIdle) {
  for (const std::int64_t idle : {0, 2, 3}) {
    PlantedModel model = random_llama();
    silence(model, idle);
    const ProbeResult r = probe_planted(model, planted_text());
    for (const LayerResult& layer : r.layers) {
      if (layer.layer == idle) {
        EXPECT_EQ(layer.removal.mean, 0);
        EXPECT_EQ(layer.removal.error, 0);
        EXPECT_EQ(layer.attention.mean, 0);
        EXPECT_EQ(layer.ffn.mean, 0);
        EXPECT_EQ(layer.geometry.influence, 0);
        EXPECT_EQ(layer.cls, LayerClass::idle);
      } else {
        EXPECT_NE(layer.removal.mean, 0);
        EXPECT_GT(layer.geometry.influence, 0.01);
        EXPECT_NE(layer.cls, LayerClass::idle);
      }
    }
    ASSERT_FALSE(r.verdict.empty());
    EXPECT_NE(r.verdict.front().find(fmt::format("Layer {} does nothing measurable", idle)),
              std::string::npos)
        << r.verdict.front();
  }
}

TEST(Planted, GreedyRemovesTheIdleLayersWithoutCost) {
  PlantedSize size;
  size.layers = 6;
  PlantedModel model = random_llama(size);
  silence(model, 1);
  silence(model, 4);
  pretrained::Weights weights = model.weights();
  const ProbeText text = planted_text(3);
  SweepControl control;
  Sweep sweep(weights, control);
  const Curves curves = measure_curves(sweep, text.windows, std::vector<double>(6, 1.0), 3);
  // Cuts may also lower the loss of a random model, so only the exact ties are known.
  const Path whole = whole_path(6);
  std::vector<Variant> variants{along(whole, path_without(whole, {1, 4}))};
  sweep.run(text.windows, whole, variants,
            [](std::size_t, const WindowStreams&, const WindowLosses& losses) {
              EXPECT_EQ(losses.variants.front(), losses.base);
            });
  EXPECT_EQ(curves.greedy.size(), 4u);
  EXPECT_LE(curves.greedy[1].loss, curves.greedy[0].loss);
}

TEST(Planted, RemovingACopyGivesTheOriginalBack) {
  PlantedSize five;
  five.layers = 5;
  PlantedModel doubled = random_llama(five);
  copy_layer(doubled, 2, 3);
  PlantedModel single = random_llama();
  for (const std::int64_t l : {0, 1, 2})
    EXPECT_EQ(single.layer(l, "mlp.up_proj"), doubled.layer(l, "mlp.up_proj"));
  for (const char* part :
       {"input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj",
        "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    single.layer(3, part) = doubled.layer(4, part);
  }
  const ProbeText text = planted_text();
  const ProbeResult with = probe_planted(doubled, text), without = probe_planted(single, text);
  EXPECT_NEAR(with.loss.mean + with.layers[3].removal.mean, without.loss.mean, 1e-7);
  EXPECT_EQ(with.layers[2].removal.mean, with.layers[3].removal.mean);
  EXPECT_EQ(with.layers[3].same_as, 2);
  EXPECT_EQ(with.layers[2].swap->mean, 0);
  EXPECT_NE(
      fmt::format("{}", fmt::join(with.verdict, " ")).find("Layers 2 and 3 have identical weights"),
      std::string::npos);
}

TEST(Planted, InfluenceFallsWithTheSquareOfALayersScale) {
  std::vector<double> influence;
  for (const double scale : {1.0, 0.1, 0.01}) {
    PlantedModel model = random_llama();
    for (const char* part : {"self_attn.o_proj", "mlp.down_proj"}) {
      for (float& w : model.layer(1, part)) w *= static_cast<float>(scale);
    }
    influence.push_back(probe_planted(model, planted_text()).layers[1].geometry.influence);
  }
  EXPECT_NEAR(influence[2] / influence[1], 0.01, 0.001);
}

/// The largest difference of any layer's influence and costs between two pages.
double distance(const ProbeResult& a, const ProbeResult& b) {
  double largest = std::abs(a.loss.mean - b.loss.mean);
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    const LayerResult &x = a.layers[l], &y = b.layers[l];
    for (const double difference :
         {x.geometry.influence - y.geometry.influence, x.removal.mean - y.removal.mean,
          x.attention.mean - y.attention.mean, x.ffn.mean - y.ffn.mean,
          x.geometry.share - y.geometry.share,
          x.swap && y.swap ? x.swap->mean - y.swap->mean : 0.0}) {
      largest = std::max(largest, std::abs(difference));
    }
  }
  return largest;
}

TEST(Planted, EditsThatKeepTheFunctionKeepEveryScore) {
  const PlantedSize size;
  const PlantedModel plain = random_llama();
  const ProbeText text = planted_text();
  const ProbeResult before = probe_planted(plain, text);
  const std::size_t D = size.width, K = D / size.heads, F = size.ffn;

  PlantedModel folded = plain;  // norm gains folded into the weights behind them
  for (std::int64_t l = 0; l < 4; ++l) {
    const auto fold = [&](const char* norm, std::initializer_list<const char*> parts) {
      std::vector<float>& gain = folded.layer(l, norm);
      for (const char* part : parts) {
        std::vector<float>& w = folded.layer(l, part);
        for (std::size_t i = 0; i < w.size(); ++i) w[i] *= gain[i % D];
      }
      std::fill(gain.begin(), gain.end(), 1.0f);
    };
    fold("input_layernorm", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"});
    fold("post_attention_layernorm", {"mlp.gate_proj", "mlp.up_proj"});
  }
  EXPECT_LT(distance(before, probe_planted(folded, text)), 1e-5);

  PlantedModel scaled = plain;  // values times 3, outputs by 3; queries times 2, keys by 2
  for (float& w : scaled.layer(1, "self_attn.v_proj")) w *= 3;
  for (float& w : scaled.layer(1, "self_attn.o_proj")) w /= 3;
  for (float& w : scaled.layer(2, "self_attn.q_proj")) w *= 2;
  for (float& w : scaled.layer(2, "self_attn.k_proj")) w /= 2;
  EXPECT_LT(distance(before, probe_planted(scaled, text)), 1e-5);

  PlantedModel permuted = plain;  // neurons reversed; heads of one group exchanged
  for (const char* part : {"mlp.gate_proj", "mlp.up_proj"}) {
    std::vector<float>& w = permuted.layer(0, part);
    for (std::size_t f = 0; f < F / 2; ++f) {
      std::swap_ranges(w.begin() + static_cast<std::ptrdiff_t>(f * D),
                       w.begin() + static_cast<std::ptrdiff_t>((f + 1) * D),
                       w.begin() + static_cast<std::ptrdiff_t>((F - 1 - f) * D));
    }
  }
  std::vector<float>& down = permuted.layer(0, "mlp.down_proj");
  for (std::size_t d = 0; d < D; ++d) {
    std::reverse(down.begin() + static_cast<std::ptrdiff_t>(d * F),
                 down.begin() + static_cast<std::ptrdiff_t>((d + 1) * F));
  }
  std::vector<float>& q = permuted.layer(0, "self_attn.q_proj");
  std::swap_ranges(q.begin(), q.begin() + static_cast<std::ptrdiff_t>(K * D),
                   q.begin() + static_cast<std::ptrdiff_t>(K * D));
  std::vector<float>& o = permuted.layer(0, "self_attn.o_proj");
  for (std::size_t d = 0; d < D; ++d) {
    std::swap_ranges(o.begin() + static_cast<std::ptrdiff_t>(d * D),
                     o.begin() + static_cast<std::ptrdiff_t>(d * D + K),
                     o.begin() + static_cast<std::ptrdiff_t>(d * D + K));
  }
  const ProbeResult after = probe_planted(permuted, text);
  EXPECT_LT(distance(before, after), 1e-5);
  EXPECT_NEAR(before.heads[0].scores.previous, after.heads[1].scores.previous, 1e-6);
  EXPECT_NEAR(before.heads[1].contribution, after.heads[0].contribution, 1e-5);
}

TEST(Planted, ASilentLayerIsReplacedWithoutCost) {
  PlantedSize size;
  size.width = 8;
  size.heads = 2;
  size.key_heads = 2;
  size.ffn = 16;
  PlantedModel model = random_llama(size);
  silence(model, 1);
  const ProbeResult r = probe_planted(model, planted_text(8, 32));
  ASSERT_TRUE(r.layers[1].shift.has_value());
  EXPECT_EQ(r.layers[1].shift->mean, 0);
  ASSERT_TRUE(r.layers[1].linear.has_value());
  EXPECT_NEAR(r.layers[1].linear->mean, 0, 1e-6);
}

/// One layer that maps h to A h + b exactly.
WindowStreams linear_streams(std::uint64_t seed, std::size_t tokens, std::size_t width) {
  const RandomStream draw(seed, 0), map(77, 0);
  WindowStreams streams;
  streams.states.assign(2, std::vector<float>(tokens * width));
  for (std::size_t t = 0; t < tokens; ++t) {
    float* h = streams.states[0].data() + t * width;
    float* next = streams.states[1].data() + t * width;
    for (std::size_t i = 0; i < width; ++i) h[i] = static_cast<float>(draw.normal(t * width + i));
    for (std::size_t i = 0; i < width; ++i) {
      next[i] = h[i] + static_cast<float>(map.normal(1000 + i));
      for (std::size_t j = 0; j < width; ++j) {
        next[i] += 0.3f * static_cast<float>(map.normal(i * width + j)) * h[j];
      }
    }
  }
  return streams;
}

TEST(Planted, ALinearLayerIsFoundOutOfSample) {
  constexpr std::int64_t kWidth = 8;
  ReplacementFit fit(1, kWidth, 1u << 20);
  fit.add(linear_streams(1, 200, kWidth), 1);
  ASSERT_TRUE(fit.can_map());
  const MapFit judged =
      judge_map(*fit.map(0), *fit.shift(0), linear_streams(2, 50, kWidth), 0, kWidth);
  EXPECT_LT(judged.residual, 1e-5 * judged.total);
}

TEST(Planted, SwapsAndCutsTakeThePathsTheyName) {
  const PlantedModel model = random_llama();
  PlantedModel exchanged = model;
  for (const char* part :
       {"input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj",
        "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    std::swap(exchanged.layer(1, part), exchanged.layer(2, part));
  }
  const ProbeText text = planted_text();
  const ProbeResult r = probe_planted(model, text), s = probe_planted(exchanged, text);
  EXPECT_NEAR(r.loss.mean + r.layers[1].swap->mean, s.loss.mean, 1e-7);
  EXPECT_NEAR(s.loss.mean + s.layers[1].swap->mean, r.loss.mean, 1e-7);
}

TEST(Planted, TheSameBitsForAnyNumberOfThreads) {
  const PlantedModel model = random_llama();
  const ProbeText text = planted_text();
  const ProbeResult one = probe_planted(model, text, 1), three = probe_planted(model, text, 3);
  EXPECT_EQ(one.loss.mean, three.loss.mean);
  for (std::size_t l = 0; l < one.layers.size(); ++l) {
    EXPECT_EQ(one.layers[l].removal.mean, three.layers[l].removal.mean);
    EXPECT_EQ(one.layers[l].geometry.influence, three.layers[l].geometry.influence);
    EXPECT_EQ(one.layers[l].linear.has_value(), three.layers[l].linear.has_value());
    EXPECT_EQ(one.layers[l].shift->mean, three.layers[l].shift->mean);
  }
  for (std::size_t n = 0; n < one.curves.greedy.size(); ++n) {
    EXPECT_EQ(one.curves.greedy[n].loss, three.curves.greedy[n].loss);
  }
  for (std::size_t h = 0; h < one.heads.size(); ++h) {
    EXPECT_EQ(one.heads[h].contribution, three.heads[h].contribution);
  }
}

TEST(Planted, SingleRemovalsShareThePrefix) {
  const std::int64_t depth = 12;
  const Path whole = whole_path(depth);
  std::vector<Variant> removals;
  for (std::int64_t l = 0; l < depth; ++l) {
    removals.push_back(along(whole, path_without(whole, {l})));
  }
  // One pass for the model itself and L (L - 1) / 2 layer runs: below L / 2 + 1 passes.
  EXPECT_EQ(Sweep::cost(whole, removals), 12 + 66);
}

}  // namespace
}  // namespace fathom::probe
