#include "study/grid.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "shape/shape.h"

namespace fathom::study {
namespace {

class GridBuilder {
 public:
  GridBuilder(const TomlReader& table, const GridRules& rules) : table_(table), rules_(rules) {}

  void build() {
    switch (rules_.kind) {
      case GridKind::list:
        return add_list();
      case GridKind::ladder:
        return add_ladder();
      case GridKind::star:
        return add_star();
    }
  }

  Grid result() const {
    if (shapes_.empty()) {
      table_.fail("sizes", "and depths leave no shape: the head size is too coarse for them");
    }
    return {{shapes_.begin(), shapes_.end()}, left_out_};
  }

 private:
  void add(std::int64_t layers, std::int64_t width) {
    const std::int64_t head = rules_.head_size > 0 ? rules_.head_size : usual_head_size(width);
    if (layers < 1 || width < 1 || width % head != 0) {
      throw ConfigError(fmt::format("{} layers x {} wide is not a multiple of the head size {}",
                                    layers, width, head));
    }
    shapes_.insert({layers, width, width / head});
  }

  void add_list() {
    require("shapes", rules_.shapes, "e.g. [\"2x64\", \"6x128\"]");
    for (const std::string& text : rules_.shapes) {
      at_key("shapes", [&] {
        const ShapeRequest shape = parse_depth_by_width(text);
        add(shape.layers, shape.width);
      });
    }
  }

  void add_ladder() {
    require("sizes", rules_.sizes, "e.g. [\"200K\", \"1M\"]");
    require("depths", rules_.depths, "e.g. [2, 6]");
    for (const double parameters : rules_.sizes) {
      for (const std::int64_t layers : rules_.depths) add_rung(layers, parameters);
    }
  }

  /// The width whose size is nearest to N at this depth, in whole heads.
  void add_rung(std::int64_t layers, double parameters) {
    constexpr std::int64_t kUsualStep = 32;
    const std::int64_t step = rules_.head_size > 0 ? rules_.head_size : kUsualStep;
    const double ideal = std::sqrt(parameters / GridShape{layers, 1, 1}.nominal_size());
    const std::int64_t heads = std::max<std::int64_t>(1, std::llround(ideal / as_double(step)));
    const GridShape shape{layers, step * heads, heads};
    const double miss = std::fabs(std::log(shape.nominal_size() / parameters));
    const bool near = miss <= std::log1p(rules_.tolerance);
    if (near && shape.width >= rules_.min_width && shape.width <= rules_.max_width) {
      add(layers, shape.width);
    } else {
      left_out_.push_back(fmt::format("{} layers at {} (nearest width {})", layers,
                                      format_count(parameters), shape.width));
    }
  }

  void add_star() {
    if (rules_.centre.empty()) table_.fail("centre", "is missing; e.g. \"6x128\"");
    ShapeRequest centre;
    at_key("centre", [&] {
      centre = parse_depth_by_width(rules_.centre);
      add(centre.layers, centre.width);
    });
    for (const std::int64_t layers : rules_.depths) {
      at_key("depths", [&] { add(layers, centre.width); });
    }
    for (const std::int64_t width : rules_.widths) {
      at_key("widths", [&] { add(centre.layers, width); });
    }
  }

  /// Errors in a value of this key are reported with its place in the file.
  template <class Take>
  void at_key(const char* key, const Take& take) const {
    try {
      take();
    } catch (const ConfigError& error) {
      table_.fail(key, fmt::format("cannot be used: {}", error.what()));
    }
  }

  template <class List>
  void require(const char* key, const List& list, const char* example) const {
    if (list.empty()) table_.fail(key, fmt::format("is missing or empty; {}", example));
  }

  const TomlReader& table_;
  const GridRules& rules_;
  std::set<GridShape> shapes_;
  std::vector<std::string> left_out_;
};

}  // namespace

double GridShape::nominal_size() const {
  return 12 * as_double(layers) * as_double(width) * as_double(width);
}

Grid read_grid(TomlReader& table) {
  table.text("kind");  // must be there
  GridRules rules;
  read_keys(table, rules);
  table.finish();
  GridBuilder builder(table, rules);
  builder.build();
  return builder.result();
}

}  // namespace fathom::study
