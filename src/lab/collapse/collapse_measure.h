// Rank collapse measured on one random stack, and summarised over many.
#pragma once

#include <optional>
#include <vector>

#include "core/interval.h"
#include "lab/collapse/stack_spec.h"
#include "lab/frame/experiment.h"
#include "lab/frame/statistics.h"

namespace fathom::lab {

/// Below this rho, 106-bit arithmetic measures its own rounding.
inline constexpr double kLog10Floor = -30;

struct CollapseRun {
  std::vector<double> direct;          // log10 rho by layer, 106 bits, from the definition
  std::vector<double> split;           // the same by split_stack.h
  std::vector<double> log10_residual;  // |X - token mean|, by split_stack.h
  /// log10 of 4 beta H / sqrt(d/H), beta the largest |Wq Wk^T|_1 |Wv Wo| of any head and layer.
  double log10_factor = 0;

  /// log10 rho: direct above the floor, split below it.
  double rho(std::size_t layer) const;
};

/// `look` is called between layers and may throw.
CollapseRun measure_collapse(const StackSpec& spec, std::uint64_t seed,
                             const std::function<void()>& look = {});
Json to_json(const CollapseRun& run);
CollapseRun collapse_run(const Json& json);

/// log10 of the right side of arXiv 2103.03404's bound on |X - token mean| after `layer` layers:
/// (4 beta H / sqrt(d_qk))^((3^l - 1)/2) |X_0 - token mean|^(3^l).
double log10_bound(const CollapseRun& run, std::size_t layer);

/// One layer over all seeds.
struct LayerLaw {
  Quartiles exponent;                 // ln rho_l / ln rho_{l-1} over the seeds with rho_{l-1} < 0.1
  double log10_residual = 0;          // median of |X - token mean|
  std::optional<double> log10_bound;  // median of the bounds that are not vacuous
  std::size_t bounds = 0;             // seeds with a right side below 1
};

struct CollapseSummary {
  StackSpec spec;
  std::vector<Quartiles> log10_rho;  // by layer, 0: the input
  Quartiles exponent;                // ln rho_{l+1} / ln rho_l, rho_l < 0.1, rho_{l+1} > 1e-30
  Interval exponent_interval;        // of its median
  Quartiles decades;                 // log10 rho lost per layer in the second half, seed by seed
  Interval decades_interval;
  std::vector<LayerLaw> layers;  // 1 .. L
  double last_exponent = 0;      // median over seeds of the exponent of the last two layers
  LineFit line;                  // of the median log10 rho against the layer, from layer 1 on
  // The theorem's bound, where it applies (no mask, skip, norm or MLP).
  std::size_t bounds = 0;         // seeds and layers with a right side below 1
  std::size_t vacuous = 0;        // with a right side of 1 or more
  std::size_t violations = 0;     // bounds that do not hold
  double largest_difference = 0;  // of log10 rho between the two methods, above 1e-25
};

CollapseSummary summarise(const StackSpec& spec, const std::vector<CollapseRun>& runs);
Json to_json(const CollapseSummary& summary);

}  // namespace fathom::lab
