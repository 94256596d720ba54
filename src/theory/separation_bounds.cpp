#include "theory/separation_bounds.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "theory/log3.h"
#include "theory/three_layer_defect.h"

namespace fathom::theory {

const double kTheorem2Root = 2 * std::sqrt(2 * std::numbers::e);

namespace {

/// Theorem 1's lower bound with log3 of the width given, so that 3^1000 need not be represented.
/// log3(d - H) = log3 d + log3(1 - H/d).
double theorem1_lower(double layers, double log3_width, double heads) {
  const double log3_difference =
      log3_width + std::log1p(-heads * std::exp(-log3_width * kLn3)) / kLn3;
  return std::pow(3.0, layers - 2) * (log3_difference - layers + 2 - log3(2));
}

double theorem1_upper(const AnalysedNetwork& net) {
  return real_gram_degree(as_double(net.layers)) * log3(as_double(net.width + net.heads));
}

double theorem2_lower(const AnalysedNetwork& net) {
  const double L = as_double(net.layers);
  const double d = as_double(net.width);
  const double H = as_double(net.heads);
  return d * L / 2 - L * (H / 2 + 1) - d * (1 + 0.5 * log3((d - H) / 2));
}

double theorem2_upper(const AnalysedNetwork& net) {
  const double L = as_double(net.layers);
  const double d = as_double(net.width);
  return 2 * d * L + L - 2 * d * log3(d / kTheorem2Root) + log3(d);
}

/// log10(3^log3_sum - heads), for any size of the exponent.
double log10_width(double log3_sum, double heads) {
  const double ln_sum = log3_sum * kLn3;
  const double ratio = heads * std::exp(-ln_sum);
  if (ratio >= 1) return -std::numeric_limits<double>::infinity();
  return (ln_sum + std::log1p(-ratio)) / std::numbers::ln10;
}

/// How close computed ranks come to R_max: for three layers and width 4 they miss it by the defect.
std::string conflict_remark() {
  const mpz_class rmax = *saturated_structural_rank(3, 4).exact;
  const mpz_class reached = rmax - three_layer_defect(4);
  return fmt::format(
      "The printed Theorem 2 upper bound lies below R_max. R_max is proved; computed ranks with "
      "one "
      "head reach it or, from width 4 on, come close ({} of {} for 3 layers). If they stay "
      "close, the printed bound is wrong here. Open.",
      format_whole(reached.get_si()), format_whole(rmax.get_si()));
}

}  // namespace

void validate(const AnalysedNetwork& net) {
  if (net.layers < 1 || net.layers > 600) {
    throw ConfigError(fmt::format("--layers {} must be 1 to 600", net.layers));
  }
  if (net.width < 1 || net.width > 100'000'000) {
    throw ConfigError(fmt::format("--width {} must be 1 to 100,000,000", net.width));
  }
  if (net.heads < 1 || net.heads > net.width) {
    throw ConfigError(fmt::format("--heads {} must be 1 to the width {}", net.heads, net.width));
  }
}

bool heads_divide_width(const AnalysedNetwork& net) {
  return net.width % net.heads == 0;
}

double depth_threshold(std::int64_t width) {
  return log3(as_double(width));
}

Regime regime(const AnalysedNetwork& net) {
  return as_double(net.layers) < depth_threshold(net.width) ? Regime::depth_efficient
                                                            : Regime::depth_inefficient;
}

std::optional<double> log3_lower_printed(const AnalysedNetwork& net) {
  if (net.width == net.heads) return std::nullopt;
  return theorem1_lower(as_double(net.layers), depth_threshold(net.width), as_double(net.heads));
}

std::optional<double> log3_lower_multiset(const AnalysedNetwork& net) {
  if (net.width == net.heads) return std::nullopt;
  const double n = as_double(net.width - net.heads) / 2;
  const double k = std::pow(3.0, as_double(net.layers) - 2);
  return k * log3((n + k - 1) / k);
}

SeparationBounds separation_bounds(const AnalysedNetwork& net) {
  validate(net);
  SeparationBounds bounds{};
  bounds.regime = regime(net);
  if (bounds.regime == Regime::depth_efficient) {
    bounds.theorem = 1;
    bounds.log3_lower = log3_lower_printed(net);
    bounds.log3_upper = theorem1_upper(net);
  } else {
    bounds.theorem = 2;
    if (net.width > net.heads) bounds.log3_lower = theorem2_lower(net);
    bounds.log3_upper = theorem2_upper(net);
  }
  bounds.structural = saturated_structural_rank(net.layers, net.width);
  bounds.printed_upper_below_structural = bounds.log3_upper < bounds.structural.log3;
  return bounds;
}

MatchingWidth matching_width(const AnalysedNetwork& deep, std::int64_t shallow_layers) {
  validate(deep);
  if (shallow_layers < 1 || shallow_layers >= deep.layers) {
    throw ConfigError(fmt::format("--match-depth {} must be 1 to {}, below --layers",
                                  shallow_layers, deep.layers - 1));
  }
  const double C = real_gram_degree(as_double(shallow_layers));
  const double heads = as_double(deep.heads);
  MatchingWidth match{shallow_layers, std::nullopt, std::nullopt, false};
  if (const auto lower = log3_lower_printed(deep)) {
    match.log10_width_printed = log10_width(*lower / C, heads);
  }
  if (const auto lower = log3_lower_multiset(deep)) {
    match.log10_width_multiset = log10_width(*lower / C, heads);
    match.proves_nothing = *match.log10_width_multiset < std::log10(as_double(deep.width));
  }
  return match;
}

ShallowEquivalent shallow_equivalent(const AnalysedNetwork& deep) {
  validate(deep);
  if (regime(deep) == Regime::depth_efficient) {
    throw ConfigError("Corollary 2 speaks of networks deeper than log3 of their width only");
  }
  const double threshold = depth_threshold(deep.width);
  const double target = theorem2_upper(deep);
  // Depth log3 d + beta2 and width 3^beta2 d: log3 of the width equals the depth, for every beta2.
  const auto surpasses = [&](double beta2) {
    const double layers = threshold + beta2;
    const double H = as_double(deep.heads);
    return H < std::exp(layers * kLn3) && theorem1_lower(layers, layers, H) >= target;
  };
  double low = 0;
  double high = 1;
  while (!surpasses(high)) high *= 2;
  for (int step = 0; step < 200; ++step) {
    const double middle = (low + high) / 2;
    (surpasses(middle) ? high : low) = middle;
  }
  const double layers = threshold + high;
  return {.beta1 = threshold / as_double(deep.layers),
          .beta2 = high,
          .layers = layers,
          .log10_width = layers * kLn3 / std::numbers::ln10,
          .shallower = layers < as_double(deep.layers)};
}

BoundsReport bounds_report(const AnalysedNetwork& network,
                           const std::vector<std::int64_t>& match_depths) {
  BoundsReport report{.network = network,
                      .threshold = depth_threshold(network.width),
                      .bounds = separation_bounds(network),
                      .matches = {},
                      .shallow = {},
                      .remarks = {}};
  for (const std::int64_t depth : match_depths) {
    report.matches.push_back(matching_width(network, depth));
  }
  if (report.bounds.regime == Regime::depth_inefficient) {
    report.shallow = shallow_equivalent(network);
  }
  if (!heads_divide_width(network)) {
    report.remarks.push_back(fmt::format(
        "{} heads do not divide the width {}: the formulas read d/H = {:g} as a real "
        "number, and no network has this shape.",
        network.heads, network.width, as_double(network.width) / as_double(network.heads)));
  }
  if (report.bounds.printed_upper_below_structural) report.remarks.push_back(conflict_remark());
  return report;
}

}  // namespace fathom::theory
