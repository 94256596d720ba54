// The sentences of a verdict on results written by hand.
#include "probe/verdict.h"

#include <gtest/gtest.h>

namespace fathom::probe {
namespace {

/// Four layers of equal size; the curve was taken on fewer tokens than the removals.
ProbeResult four_layers() {
  ProbeResult r;
  r.model.layers = 4;
  r.tokens = 4096;
  r.curves.tokens = 1024;
  for (std::int64_t l = 0; l < 4; ++l) {
    LayerResult layer;
    layer.layer = l;
    layer.cls = LayerClass::important;
    layer.removal.mean = l == 2 ? 0.5 : 0.9;
    layer.removal.low = layer.removal.mean - 0.02;
    layer.removal.high = layer.removal.mean + 0.02;
    layer.attention.high = 1;
    r.layers.push_back(layer);
  }
  const auto point = [&](double loss, std::vector<std::int64_t> removed) {
    CurvePoint made;
    made.loss = loss;
    made.removed = std::move(removed);
    r.curves.greedy.push_back(made);
  };
  point(2.0, {});
  point(2.53, {2});
  point(3.25, {2, 0});
  return r;
}

TEST(Verdict, OneLayerHasOneCost) {
  ProbeResult r = four_layers();
  r.shape.cut = 1;
  const std::vector<std::string> said = make_verdict(r);
  ASSERT_GE(said.size(), 2u);
  EXPECT_EQ(said[0],
            "Every layer earns its place on this text: the cheapest, layer 2, costs 0.500 ± 0.020 "
            "nats, 64.9 % more perplexity.");
  EXPECT_EQ(said[1].substr(0, said[1].find(" on this text")),
            "Cutting layer 2 (1 of 4) costs 0.500 ± 0.020 nats");
}

TEST(Verdict, CutsOfSeveralLayersSayTheirTokens) {
  ProbeResult r = four_layers();
  r.shape.cut = 2;
  EXPECT_EQ(make_verdict(r)[1].substr(0, 66),
            "Cutting layers 0 and 2 (2 of 4) costs 1.250 nats (on 1,024 tokens)");
  r.curves.tokens = r.tokens;
  EXPECT_EQ(make_verdict(r)[1].substr(0, 62),
            "Cutting layers 0 and 2 (2 of 4) costs 1.250 nats on this text ");
}

}  // namespace
}  // namespace fathom::probe
