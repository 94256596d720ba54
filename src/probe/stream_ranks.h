// How many directions the stream uses: effective ranks of a sample of centred states.
//
// With singular values s_i: exp of the entropy of s_i / sum s (Roy and Vetterli), the same on
// s_i^2, and the participation ratio (sum s^2)^2 / sum s^4. First positions are left out.
#pragma once

#include <vector>

#include "probe/result.h"
#include "probe/sweep.h"

namespace fathom::probe {

class StreamSample {
 public:
  /// At most `tokens` states of each stream, spread over `windows` windows.
  StreamSample(std::int64_t depth, std::int64_t width, std::int64_t tokens, std::size_t windows);

  void add(const WindowStreams& streams);
  std::int64_t tokens() const;
  /// Fills the ranks of all streams.
  void measure(std::vector<StreamResult>& results, unsigned threads) const;

 private:
  std::int64_t width_, per_window_;
  std::int64_t most_;
  std::vector<std::vector<float>> states_;  // L + 1
};

}  // namespace fathom::probe
