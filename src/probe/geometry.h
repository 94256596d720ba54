// What the layers of the intact model do to the stream: angles, norms, contributions.
//
// h_l is the stream before layer l, a_l and m_l what its halves add (after post-branch norms; in
// post-norm models the change of the stream). Means are over tokens, of ratios where a ratio is
// taken; the first position of a window is kept apart, since many models put large values there.
#pragma once

#include <array>
#include <vector>

#include "probe/paired.h"
#include "probe/sweep.h"

namespace fathom::probe {

/// Sums over the tokens of one window, one entry per layer.
struct LayerSums {
  double influence = 0;        // 1 - cos(h_l, h_{l+1})    (arXiv 2403.03853)
  double first_influence = 0;  // the same at the first position
  double angle = 0;            // arccos(cos(h_l, h_{l+1})) / pi
  double turn = 0;             // arccos(cos(h_{l+1} - h_l, h_{l+2} - h_{l+1})) / pi
  double norm = 0, attention_norm = 0, ffn_norm = 0;
  double attention_share = 0;   // |a_l| / |h_l|
  double ffn_share = 0;         // |m_l| / |h_l + a_l|
  double share = 0;             // |a_l + m_l| / |h_l|
  double attention_cosine = 0;  // cos(a_l, h_l)
  double ffn_cosine = 0;        // cos(m_l, h_l + a_l)
  double cosine = 0;            // cos(a_l + m_l, h_l)
  double progress = 0;          // <h_l - h_0, h_L - h_0> / |h_L - h_0|^2, of h_{l+1}
};

/// Sums that every position of a window adds to; the first position has its own influence.
inline constexpr std::array kTokenSums{&LayerSums::influence,
                                       &LayerSums::angle,
                                       &LayerSums::turn,
                                       &LayerSums::norm,
                                       &LayerSums::attention_norm,
                                       &LayerSums::ffn_norm,
                                       &LayerSums::attention_share,
                                       &LayerSums::ffn_share,
                                       &LayerSums::share,
                                       &LayerSums::attention_cosine,
                                       &LayerSums::ffn_cosine,
                                       &LayerSums::cosine,
                                       &LayerSums::progress};

struct WindowGeometry {
  double tokens = 0;  // without the first position
  std::vector<LayerSums> layers;
  /// distance[l][n - 1]: arccos(cos(h_l, h_{l+n})) / pi, summed
  std::vector<std::vector<double>> distance;
  std::vector<double> largest;  // of h_l, l = 0 .. L: the largest magnitude of any number,
  std::vector<double> median;   // and the median magnitude
};

/// 1 - cos(h, next) summed over the positions of a window but the first.
double influence_sum(const std::vector<float>& h, const std::vector<float>& next,
                     std::int64_t width);

/// Bit for bit the same for any number of threads: sums are over fixed blocks of tokens.
WindowGeometry measure_geometry(const WindowStreams& streams, std::int64_t width,
                                unsigned threads = 1);

}  // namespace fathom::probe
