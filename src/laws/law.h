// One interface for every published depth-width law.
//
// A law gives the optimal depth on a budget surface; some also give a loss for any shape, from
// which penalties and bands follow. Each states where its data lie, in parameters, tokens and
// depth; one function, Law::evidence, derives the mark of a statement from that.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/interval.h"
#include "laws/budget.h"

namespace fathom::laws {

/// How a statement is known. `fitted` means inside the data of a fit in size, tokens and depth;
/// `convention` is what people chose, a habit or rule of thumb, with no measured loss behind it.
/// `exact` is counted, `modelled` computed from a model of the hardware.
enum class Evidence { proved, exact, fitted, extrapolated, modelled, convention };
constexpr auto enum_names(Evidence) {
  return std::array{"proved", "exact", "fitted", "extrapolated", "modelled", "convention"};
}

struct LawInfo {
  std::string name;                // "levine2020"
  std::string title;               // "Levine 2020"
  std::string source;              // "arXiv 2006.12467"
  std::string claim;               // the formula, in one line
  bool fitted = true;              // to measured losses; false: a convention
  Interval parameters;             // block parameters its data span
  std::string interval_meaning;    // what the interval of an optimum is
  Interval layers;                 // depths its data span
  std::optional<Interval> tokens;  // training tokens its data span; absent: it has no such axis
};

/// A claim's place: block parameters, training tokens, depth.
struct Place {
  double parameters = 0;
  double tokens = 0;
  double layers = 0;
};
/// How far a place lies outside a law's data: the length of the vector of logarithmic steps to the
/// nearest size, token count and depth that it has; 0 inside.
double distance_outside(const LawInfo& law, const Place& place);
/// The axes on which the place leaves the data, as text: "its data end at 600M parameters and 48
/// layers"; empty inside.
std::string outside_text(const LawInfo& law, const Place& place);

struct Optimum {
  double layers = 0;
  double width = 0;
  std::optional<Interval> layers_interval;
};

class Law {
 public:
  virtual ~Law() = default;
  virtual const LawInfo& info() const = 0;

  /// The best depth and width on the surface.
  virtual Optimum optimum(const Budget& budget) const = 0;

  /// The same after `tokens` tokens; only laws whose best depth depends on them differ.
  virtual Optimum optimum_after(const Budget& budget, double tokens) const;

  /// Loss in nats of a shape with `parameters` in the budget's count after `tokens` tokens; absent
  /// for laws that only locate an optimum.
  virtual std::optional<double> loss(double layers, double width, double parameters,
                                     double tokens) const;

  bool has_loss() const { return loss(12, 768, 1e8, 1e10).has_value(); }

  /// Why this budget should not be planned with it, each a clause about "it"; empty for laws that
  /// know enough.
  virtual std::vector<std::string> objections(const Budget& budget, double tokens) const;

  /// The mark of what the law says about this place.
  virtual Evidence evidence(const Place& place) const;
  /// The mark of its loss or penalty; differs for laws that borrow one.
  virtual Evidence loss_evidence(const Place& place) const { return evidence(place); }
  /// The mark of its optimum on this surface.
  Evidence optimum_evidence(const Budget& budget, double tokens) const;
};

/// The loss of a law along one budget surface; the optimum is found once.
class LossSurface {
 public:
  /// InternalError when the law has no loss.
  LossSurface(const Law& law, const Budget& budget, double tokens);

  double best_layers() const { return best_layers_; }
  double best_loss() const { return best_loss_; }
  /// Loss at this depth over the best loss, minus one.
  double penalty(double layers) const;
  /// Depths whose loss is within `tolerance` of the best.
  Interval band(double tolerance) const;
  const Law& law() const { return law_; }
  const Budget& budget() const { return budget_; }
  double tokens() const { return tokens_; }

 private:
  const Law& law_;
  Budget budget_;
  double tokens_;
  double best_layers_;
  double best_loss_;
};

using LawPointer = std::shared_ptr<const Law>;

/// The published laws in the order they are shown.
const std::vector<LawPointer>& published_laws();
/// The published law of that name; nullptr when there is none.
LawPointer published_law(const std::string& name);

/// Chinchilla's rule of thumb (arXiv 2203.15556).
inline constexpr double kTokensPerParameter = 20;

/// Smallest depth a law may give; below it the empirical forms lose their meaning.
constexpr double kMinLayers = 2;
constexpr double kMaxLayers = 1e5;

/// The depth on the surface that a rule N -> depth picks: the fixed point of
/// L = depth(N(L)), N the block parameters at L. `depth` must not fall with N.
double depth_on_surface(const Budget& budget, const std::function<double(double)>& depth);
/// The depth of least loss on the surface; `loss_at` is unimodal in depth.
double least_loss_depth(const Budget& budget,
                        const std::function<double(double layers, double width)>& loss_at);

}  // namespace fathom::laws
