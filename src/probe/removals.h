// The main part of a probe: geometry of the intact model and the paired cost of removing, halving
// and swapping every layer, added up over windows.
#pragma once

#include <memory>

#include "probe/geometry.h"
#include "probe/replacements.h"
#include "probe/result.h"
#include "probe/stream_ranks.h"
#include "probe/sweep.h"

namespace fathom::probe {

class Removals {
 public:
  explicit Removals(std::int64_t depth);

  /// For every layer: without it, without its attention, without its feed-forward; then the swaps.
  const std::vector<Variant>& variants() const { return variants_; }
  void add(const Window& window, const WindowStreams& streams, const WindowLosses& losses,
           std::int64_t width, unsigned threads = 1);

  std::int64_t tokens() const { return tokens_; }
  std::size_t windows() const { return loss_.sum.size(); }
  /// Every layer's removal cost is known well enough.
  bool settled() const;
  void fill(ProbeResult& result) const;

 private:
  void fill_layer(std::int64_t layer, double tokens, LayerResult& out) const;
  void fill_agreement(ProbeResult& result) const;

  std::int64_t depth_, tokens_ = 0;
  std::vector<Variant> variants_;
  std::vector<WindowSums> sums_;  // of variants
  WindowSums loss_;
  std::vector<WindowSums> influence_;  // of layers
  double geometry_tokens_ = 0, first_tokens_ = 0;
  std::vector<LayerSums> geometry_;
  std::vector<std::vector<double>> distance_;
  std::vector<double> largest_, median_;
};

/// Sum of variant minus base over the positions that count.
double difference(const std::vector<float>& variant, const std::vector<float>& base);

}  // namespace fathom::probe
