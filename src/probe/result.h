// Everything a probe measured. Text, JSON and page are views of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/interval.h"
#include "probe/geometry.h"
#include "probe/paired.h"

namespace fathom::probe {

/// What removing a layer costs on the text, in words (layer_class.h has the bounds).
enum class LayerClass : std::uint8_t {
  idle,
  cheap,
  working,
  important,
  critical,
  harmful,
  undecided,
  unmeasured
};
constexpr auto enum_names(LayerClass) {
  return std::array{"idle",     "cheap",   "working",   "important",
                    "critical", "harmful", "undecided", "unmeasured"};
}

struct LayerResult {
  std::int64_t layer = 0;
  LayerSums geometry;                 // means per token
  Cost removal, attention, ffn;       // nats per token, paired
  std::optional<Cost> swap;           // with the next layer
  std::optional<Cost> shift, linear;  // a fitted shift or map in its place, held out
  std::optional<double> linear_fit;   // share of the layer's change that the map explains
  LayerClass cls = LayerClass::undecided;
  bool quiet = false;         // influence below 0.4 of the median layer's
  std::int64_t same_as = -1;  // an earlier layer with equal weights
};

/// The stream after l layers.
struct StreamResult {
  double largest = 0, median = 0;                                // magnitudes
  std::optional<double> rank_sigma, rank_square, participation;  // effective ranks
};

/// Predictions read off the stream after l layers: final norm and head applied to it.
struct LensResult {
  double divergence = 0;  // KL(p_L || p_l), nats
  double agreement = 0;   // share of positions where both pick the same token
  double loss = 0;        // what stopping here would cost
};

enum class HeadRole : std::uint8_t { previous, induction, duplicate, sink, local, broad, mixed };
constexpr auto enum_names(HeadRole) {
  return std::array{"previous", "induction", "duplicate", "sink", "local", "broad", "mixed"};
}

/// Definitions: heads.h, head_copying.h. NaN: not measured.
struct HeadScores {
  double previous = 0, induction = 0, duplicate = 0, sink = 0, local = 0, broad = 0;
  double self = 0, second = 0, delimiter = 0, span = 0;
  double copying = 0, copying_positive = 0;

  template <class Self, class Visitor>
  static void visit(Self& scores, Visitor&& score) {
    score("previous", scores.previous);
    score("induction", scores.induction);
    score("duplicate", scores.duplicate);
    score("sink", scores.sink);
    score("local", scores.local);
    score("broad", scores.broad);
    score("self", scores.self);
    score("second", scores.second);
    score("delimiter", scores.delimiter);
    score("span", scores.span);
    score("copying", scores.copying);
    score("copying_positive", scores.copying_positive);
  }
};

struct HeadResult {
  std::int64_t layer = 0, head = 0;
  HeadRole role = HeadRole::mixed;
  HeadScores scores;
  double contribution = 0;           // |what it writes| / |stream|
  std::optional<double> importance;  // mean |dL/d gate|, nats per token (head_importance.h)
  std::optional<Cost> removal;       // its output set to zero
};

/// All heads of a role removed at once: heads that do the same thing back each other up, so single
/// removals may cost nothing where this does.
struct RoleRemoval {
  HeadRole role = HeadRole::mixed;
  std::int64_t heads = 0;
  Cost removal;
};

/// Loss against layers kept; the first point is the whole model.
struct CurvePoint {
  std::int64_t kept = 0;
  double loss = 0;
  std::vector<std::int64_t> removed;  // in the order of removal
};

struct Curves {
  std::int64_t tokens = 0;
  std::vector<CurvePoint> greedy, by_influence, last;
  std::vector<std::vector<CurvePoint>> random;
};

struct ModelFacts {
  std::string name, family;
  std::int64_t layers = 0, width = 0, heads = 0, key_heads = 0, head_size = 0, ffn = 0, vocab = 0,
               context = 0, parameters = 0;
  bool causal = true;  // predicts the next token; otherwise masked ones
};

/// What a law says a model trained with fewer layers would lose, and on what evidence.
struct TrainedPrice {
  double nats = 0;
  std::string evidence;
};

struct ShapeFacts {
  std::optional<double> law_layers;  // what the laws together recommend at its size
  std::optional<Interval> band;      // depths within 0.5 % of the best loss
  std::string evidence;
  std::optional<TrainedPrice> trained_price;  // of `cut` layers fewer, where the law reaches
  std::int64_t cut = 0;
  double decode_saving = 0;  // share of the time per token that `cut` layers fewer save
  double cache_saving = 0;
  std::string hardware;
};

struct ProbeResult {
  ModelFacts model;
  std::string text;
  std::int64_t tokens = 0, windows = 0, window = 0;
  std::string stopped_because;
  double seconds = 0;
  bool has_loss = true;
  Cost loss;
  std::optional<double> bits_per_byte;
  std::vector<LayerResult> layers;
  std::vector<StreamResult> streams;  // L + 1
  std::int64_t rank_tokens = 0;
  std::vector<LensResult> lens;  // L + 1, may be empty
  std::int64_t lens_tokens = 0;
  std::vector<std::vector<double>> distance;  // [l][n - 1]
  std::vector<HeadResult> heads;
  std::vector<RoleRemoval> role_removals;
  std::int64_t head_tokens = 0, importance_tokens = 0;
  Curves curves;
  double influence_agreement = 0;  // rank correlation of influence and removal cost
  double half_agreement = 0;       // of removal costs on two halves of the text
  double half_influence_agreement = 0;
  /// Rank correlation of the heads' importance and the size of their removal cost.
  std::optional<double> importance_agreement;
  ShapeFacts shape;
  std::vector<std::string> notes;
  std::vector<std::string> verdict;
};

}  // namespace fathom::probe
