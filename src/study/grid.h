// Which shapes a study trains.
//
//   list    shapes as written, "6x128"
//   ladder  every depth at every size: D = sqrt(N / 12 L) rounded to whole heads, so that at each
//           size N all depths have about the same number of parameters
//   star    one centre; every depth at its width, every width at its depth
//
// Rounding to heads moves a ladder's sizes: a rung is left out where the nearest width misses N by
// more than `tolerance`, because depths would then be compared at unequal sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/toml_reader.h"

namespace fathom::study {

struct GridShape {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;
  auto operator<=>(const GridShape&) const = default;
};

struct Grid {
  std::vector<GridShape> shapes;      // each once, by depth and width
  std::vector<std::string> left_out;  // rungs of a ladder, in words
};

/// Reads the [grid] table and finishes it. ConfigError when it makes no shape.
Grid read_grid(TomlReader& table);

}  // namespace fathom::study
