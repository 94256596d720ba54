#include "laws/gemstones.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/csv.h"
#include "core/error.h"

namespace fathom {
namespace embedded {
extern const std::string_view gemstones_fits_csv;
}
}  // namespace fathom

namespace fathom::laws {
namespace {

double best_depth(const GemstonesFit& fit, const Budget& budget) {
  return least_loss_depth(budget, [&](double layers, double width) {
    return std::exp(fit.width_log) * std::pow(width, -fit.width_exponent) +
           std::exp(fit.depth_log) * std::pow(layers, -fit.depth_exponent);
  });
}

}  // namespace

const std::vector<GemstonesFit>& gemstones_fits() {
  static const std::vector<GemstonesFit> fits = [] {
    const CsvTable table(embedded::gemstones_fits_csv, "gemstones_fits.csv");
    std::vector<GemstonesFit> list;
    for (std::size_t row = 0; row < table.size(); ++row) {
      if (table.cell(row, "form") != "w+L+P+T") continue;
      const auto value = [&](const char* column) { return table.number(row, column); };
      list.push_back({table.cell(row, "set"), value("exp_w"), value("lncoef_w"), value("exp_L"),
                      value("lncoef_L"), value("exp_P"), value("lncoef_P"), value("exp_T"),
                      value("lncoef_T"), value("lnE")});
    }
    // The table lists the cool-down fit with Huber delta 1e-4 first.
    if (list.empty() || list.front().set != "cool_end") {
      throw InternalError("gemstones_fits.csv does not start with the cool-down fit");
    }
    return list;
  }();
  return fits;
}

GemstonesLaw::GemstonesLaw() : GemstonesLaw(gemstones_fits().front()) {}

GemstonesLaw::GemstonesLaw(GemstonesFit fit) : fit_(std::move(fit)) {
  info_.name = kName;
  info_.title = "Gemstones 2025";
  info_.source = "arXiv 2502.06857";
  info_.claim = fmt::format(
      "loss = {:.3g}·d^-{:.3g} + {:.3g}·L^-{:.3g} + terms in parameters and tokens",
      std::exp(fit_.width_log), fit_.width_exponent, std::exp(fit_.depth_log), fit_.depth_exponent);
  // 22 shapes of 23 to 1770 M block parameters.
  info_.parameters = {22e6, 1.8e9};
  info_.layers = {3, 80};
  info_.tokens = Interval{10e9, 350e9};
  info_.interval_meaning = "range over the published fits of this form";
}

Optimum GemstonesLaw::optimum(const Budget& budget) const {
  const double layers = best_depth(fit_, budget);
  Interval range{layers, layers};
  for (const GemstonesFit& other : gemstones_fits()) {
    const double depth = best_depth(other, budget);
    range.low = std::min(range.low, depth);
    range.high = std::max(range.high, depth);
  }
  return {layers, budget.width_at(layers), range};
}

std::optional<double> GemstonesLaw::loss(double layers, double width, double parameters,
                                         double tokens) const {
  return std::exp(fit_.width_log) * std::pow(width, -fit_.width_exponent) +
         std::exp(fit_.depth_log) * std::pow(layers, -fit_.depth_exponent) +
         std::exp(fit_.parameter_log) * std::pow(parameters, -fit_.parameter_exponent) +
         std::exp(fit_.token_log) * std::pow(tokens, -fit_.token_exponent) +
         std::exp(fit_.constant_log);
}

}  // namespace fathom::laws
