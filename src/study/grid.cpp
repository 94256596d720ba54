#include "study/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "shape/shape.h"

namespace fathom::study {
namespace {

const std::vector<std::string> kKinds{"list", "ladder", "star"};

std::vector<std::int64_t> wholes(TomlReader& table, const char* key, bool required = true) {
  std::vector<std::int64_t> values;
  for (const std::string& item : table.list(key)) values.push_back(parse_whole(item, key));
  if (values.empty() && required) table.fail(key, "is missing or empty; a list is needed");
  return values;
}

class GridBuilder {
 public:
  GridBuilder(TomlReader& table) : table_(table), head_size_(table.integer("head_size", 0)) {
    if (head_size_ < 0 || head_size_ > 4096) table.fail("head_size", "must lie between 1 and 4096");
  }

  void add(std::int64_t layers, std::int64_t width) {
    const std::int64_t head = head_size_ > 0 ? head_size_ : usual_head_size(width);
    if (layers < 1 || width < 1 || width % head != 0) {
      throw ConfigError(fmt::format("grid: {} layers x {} wide is no multiple of the head size {}",
                                    layers, width, head));
    }
    shapes_.insert({layers, width, width / head});
  }

  void add_list() {
    const auto shapes = table_.list("shapes");
    if (shapes.empty()) table_.fail("shapes", "is missing or empty; e.g. [\"2x64\", \"6x128\"]");
    for (const std::string& text : shapes) {
      const ShapeRequest shape = parse_depth_by_width(text);
      add(shape.layers, shape.width);
    }
  }

  void add_ladder() {
    const double tolerance = table_.number("tolerance", 0.15);
    const std::int64_t least = table_.integer("min_width", 0);
    const std::int64_t most = table_.integer("max_width", std::int64_t{1} << 17);
    const auto sizes = table_.list("sizes");
    if (sizes.empty()) table_.fail("sizes", "is missing or empty; e.g. [\"200K\", \"1M\"]");
    const auto depths = wholes(table_, "depths");
    const std::int64_t step = head_size_ > 0 ? head_size_ : 32;
    for (const std::string& size : sizes) {
      const double parameters = parse_count(size, "sizes");
      for (const std::int64_t layers : depths) {
        const double block = 12.0 * static_cast<double>(layers);
        const double ideal = std::sqrt(parameters / block);
        const auto width =
            std::max<std::int64_t>(step, step * std::llround(ideal / static_cast<double>(step)));
        const double got = block * static_cast<double>(width) * static_cast<double>(width);
        const bool near = std::fabs(std::log(got / parameters)) <= std::log1p(tolerance);
        if (near && width >= least && width <= most) {
          add(layers, width);
        } else {
          left_out_.push_back(fmt::format("{} layers at {} (nearest width {})", layers,
                                          format_count(parameters), width));
        }
      }
    }
  }

  void add_star() {
    const ShapeRequest centre = parse_depth_by_width(table_.text("centre"));
    add(centre.layers, centre.width);
    for (const std::int64_t layers : wholes(table_, "depths", false)) add(layers, centre.width);
    for (const std::int64_t width : wholes(table_, "widths", false)) add(centre.layers, width);
  }

  Grid result() const {
    if (shapes_.empty()) {
      table_.fail("sizes", "and depths leave no shape: the head size is too coarse for them");
    }
    return {{shapes_.begin(), shapes_.end()}, left_out_};
  }

 private:
  TomlReader& table_;
  std::int64_t head_size_;
  std::set<GridShape> shapes_;
  std::vector<std::string> left_out_;
};

}  // namespace

Grid read_grid(TomlReader& table) {
  GridBuilder builder(table);
  const std::string kind = table.text("kind");
  if (kind == "list") {
    builder.add_list();
  } else if (kind == "ladder") {
    builder.add_ladder();
  } else if (kind == "star") {
    builder.add_star();
  } else {
    table.fail("kind", fmt::format("'{}' is not one of {}.{}", kind, join(kKinds, ", "),
                                   did_you_mean(kind, kKinds)));
  }
  table.finish();
  return builder.result();
}

}  // namespace fathom::study
