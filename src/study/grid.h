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

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/spec_keys.h"

namespace fathom::study {

enum class GridKind : std::uint8_t { list, ladder, star };
constexpr auto enum_names(GridKind) {
  return std::array{"list", "ladder", "star"};
}

/// A [grid] table as it is written.
struct GridRules {
  GridKind kind = GridKind::list;
  std::int64_t head_size = 0;
  std::vector<std::string> shapes;
  std::vector<std::int64_t> depths;
  std::vector<double> sizes;
  double tolerance = 0.15;
  std::int64_t min_width = 0, max_width = 1 << 17;
  std::string centre;
  std::vector<std::int64_t> widths;

  /// Every key that a grid of this kind has (core/spec_keys.h).
  template <class Self, class Visitor>
  static void visit_keys(Self& grid, Visitor& key) {
    key("kind", grid.kind, "how shapes are specified");
    key("head_size", grid.head_size, "heads = width / head_size; 0: the usual one for the width",
        {0, 4096});
    if (grid.kind == GridKind::list) key("shapes", grid.shapes, "layers x width: \"6x128\"");
    if (grid.kind == GridKind::star) key("centre", grid.centre, "a shape: \"6x128\"");
    if (grid.kind != GridKind::list) key("depths", grid.depths, "layers");
    if (grid.kind == GridKind::star)
      key("widths", grid.widths, "widths at the depth of the centre");
    if (grid.kind != GridKind::ladder) return;
    key("sizes", grid.sizes, "sizes N at which all depths are compared");
    key("tolerance", grid.tolerance, "largest relative error in N after rounding the width",
        {.low = 0});
    key("min_width", grid.min_width, "narrower shapes are left out", {0, 1 << 17});
    key("max_width", grid.max_width, "wider shapes are left out", {1, 1 << 17});
  }
};

struct GridShape {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;
  auto operator<=>(const GridShape&) const = default;

  /// 12 L D^2, the parameters of its blocks without biases and norms.
  double nominal_size() const;
};

struct Grid {
  std::vector<GridShape> shapes;      // each once, by depth and width
  std::vector<std::string> left_out;  // rungs of a ladder, as text
};

/// Reads the [grid] table and finishes it. ConfigError when it makes no shape.
Grid read_grid(TomlReader& table);

}  // namespace fathom::study
