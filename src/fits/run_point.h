// One finished training run as the analysis sees it.
#pragma once

#include <cstdint>
#include <string>

namespace fathom::fits {

struct RunPoint {
  std::string id;           // run id, for messages
  std::int64_t layers = 0;  // L
  std::int64_t width = 0;   // D
  double params = 0;        // N, non-embedding parameters
  double tokens = 0;        // training tokens
  double loss = 0;          // held-out nats per token
  std::uint64_t seed = 0;
};

/// What a quantity of a run can be at all. Numbers outside are mistakes, and the fits, which work
/// in logarithms, would spend minutes on them.
struct RunRange {
  const char* name;
  double low, high;
  bool holds(double value) const { return value >= low && value <= high; }
};
inline constexpr RunRange kRunLayers{"layers", 1, 1e6};
inline constexpr RunRange kRunWidth{"width", 1, 1e9};
inline constexpr RunRange kRunParams{"params", 1, 1e18};
inline constexpr RunRange kRunTokens{"tokens", 1, 1e18};
inline constexpr RunRange kRunLoss{"loss", 1e-12, 1e6};

}  // namespace fathom::fits
