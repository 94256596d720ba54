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

}  // namespace fathom::fits
