// Can these runs separate depth from width, and tokens from size? Checked before anything is
// fitted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fits/run_point.h"

namespace fathom::fits {

struct DesignCheck {
  std::size_t depths = 0;
  std::size_t widths = 0;
  /// Correlation of ln L and ln D over the shapes; near one in magnitude, they move together.
  double depth_width_correlation = 0;
  /// Scatter of ln T that ln L and ln D do not explain: near zero the tokens follow the size.
  double token_freedom = 0;
  bool separates_depth_and_width = false;
  bool separates_tokens = false;
  std::vector<std::string> warnings;
};

DesignCheck check_design(std::span<const RunPoint> points);

}  // namespace fathom::fits
