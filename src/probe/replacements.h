// What could replace a layer: a fitted shift h <- h + b, or a linear map
// h <- h + A (h - mean) + b with A by ridge regression of the layer's change on its input.
//
// Fitted on some windows and evaluated on others: in-sample fits are too optimistic.
#pragma once

#include <memory>
#include <optional>

#include "probe/sweep.h"

namespace fathom::probe {

class ReplacementFit {
 public:
  /// Maps are fitted only where their sums fit the memory given.
  ReplacementFit(std::int64_t depth, std::int64_t width, std::uint64_t memory_bytes);

  void add(const WindowStreams& streams, unsigned threads);
  /// Enough tokens for a map: four per width.
  bool can_map() const;
  std::int64_t tokens() const { return tokens_; }

  std::shared_ptr<const LayerMap> shift(std::int64_t layer) const;
  std::shared_ptr<const LayerMap> map(std::int64_t layer) const;

 private:
  struct Sums;
  std::int64_t width_, tokens_ = 0;
  bool maps_;
  std::vector<std::shared_ptr<Sums>> layers_;
};

/// The share of a layer's change (about its mean) that a map explains on these streams:
/// residual and total squares, to be summed over windows.
struct MapFit {
  double residual = 0, total = 0;
};
MapFit judge_map(const LayerMap& map, const LayerMap& shift, const WindowStreams& streams,
                 std::int64_t layer, std::int64_t width);

}  // namespace fathom::probe
