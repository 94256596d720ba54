// Rotary positions (arXiv 2104.09864) with the scalings in use: pair j of R/2 turns by
// position x inv_j, inv_j = theta^(-2j/R); pairs are (x_j, x_{j + R/2}).
//
//   linear    inv / factor
//   dynamic   beyond T0 tokens theta grows: theta ((f T / T0) - (f - 1))^(R / (R - 2))
//   llama3    long waves / factor, short ones as they are, a ramp between
//   yarn      a ramp over pairs between inv and inv / factor; cos and sin times 0.1 ln f + 1
//             (arXiv 2309.00071)
//   longrope  inv / short_j up to T0 tokens, inv / long_j beyond; cos and sin times
//             sqrt(1 + ln f / ln T0) (arXiv 2402.13753)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/enum_names.h"

namespace fathom::pretrained {

enum class RotaryKind : std::uint8_t { plain, linear, dynamic, llama3, yarn, longrope };
constexpr auto enum_names(RotaryKind) {
  return std::array{"default", "linear", "dynamic", "llama3", "yarn", "longrope"};
}

struct RotarySpec {
  RotaryKind kind = RotaryKind::plain;
  double theta = 10000;
  std::int64_t size = 0;  // R, even, at most the head size
  double factor = 1;
  double original_context = 0;  // T0
  double low_frequency = 1, high_frequency = 4;
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  double amplitude = 0;  // of cos and sin; 0: by the kind's formula
  double mscale = 0, mscale_all = 0;
  std::vector<double> short_factors, long_factors;
};

struct RotaryTable {
  std::vector<double> inverse;  // R / 2
  double amplitude = 1;
};
/// `tokens`: the length of the text, which dynamic and longrope depend on.
RotaryTable rotary_table(const RotarySpec& spec, std::int64_t tokens);

}  // namespace fathom::pretrained
