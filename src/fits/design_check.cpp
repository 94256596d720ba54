#include "fits/design_check.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <cmath>
#include <set>

#include "core/counts.h"
#include "fits/decompositions.h"

namespace fathom::fits {
namespace {

// A ladder with ln L = 0.6 ln d (Chinchilla's) has a correlation of about 0.97 and leaves the depth
// exponent at +-0.27 (arXiv 2602.05970): useless for a depth law.
constexpr double kCollinear = 0.95;
constexpr double kTokenFreedom = 0.2;

}  // namespace

DesignCheck check_design(std::span<const RunPoint> points) {
  DesignCheck check;
  std::set<std::int64_t> depths;
  std::set<std::int64_t> widths;
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const RunPoint& point : points) {
    depths.insert(point.layers);
    widths.insert(point.width);
    shapes.emplace(point.layers, point.width);
  }
  check.depths = depths.size();
  check.widths = widths.size();
  const auto count = as_signed(shapes.size());
  Eigen::ArrayXd log_depths(count);
  Eigen::ArrayXd log_widths(count);
  Eigen::Index i = 0;
  for (const auto& [layers, width] : shapes) {
    log_depths[i] = std::log(as_double(layers));
    log_widths[i++] = std::log(as_double(width));
  }
  const Eigen::ArrayXd u = log_depths - log_depths.mean();
  const Eigen::ArrayXd v = log_widths - log_widths.mean();
  const double spread = std::sqrt(u.square().sum() * v.square().sum());
  check.depth_width_correlation = spread > 0 ? (u * v).sum() / spread : 0;

  const auto runs = as_signed(points.size());
  Eigen::MatrixXd design(runs, 3);
  Eigen::VectorXd log_tokens(runs);
  for (Eigen::Index r = 0; r < runs; ++r) {
    const RunPoint& point = points[r];
    design.row(r) << 1, std::log(as_double(point.layers)), std::log(as_double(point.width));
    log_tokens[r] = std::log(point.tokens);
  }
  const Eigen::VectorXd left = log_tokens - design * least_squares(design, log_tokens);
  check.token_freedom = runs > 0 ? std::sqrt(left.squaredNorm() / as_double(runs)) : 0;
  check.separates_tokens = check.token_freedom > kTokenFreedom;

  if (check.depths < 2) {
    check.warnings.push_back("one depth only: nothing can be said about depth");
  } else if (check.depths < 3) {
    check.warnings.push_back("two depths only: an exponent in depth needs three");
  }
  const bool collinear = std::fabs(check.depth_width_correlation) > kCollinear;
  if (check.depths >= 2 && collinear) {
    check.warnings.push_back(
        fmt::format("depth and width move together (correlation {:.2f} of their logarithms): their "
                    "effects cannot be separated; vary the depth at fixed size",
                    check.depth_width_correlation));
  }
  check.separates_depth_and_width = check.depths >= 3 && check.widths >= 3 && !collinear;
  return check;
}

}  // namespace fathom::fits
