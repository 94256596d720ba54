#include "probe/geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/counts.h"

namespace fathom::probe {
namespace {

constexpr std::size_t kTokenBlock = 32;

double dot(const float* a, const float* b, std::size_t count) {
  // Eight sums side by side, so that one does not wait for the other.
  constexpr std::size_t kLanes = 8;
  double sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) sums[k] += static_cast<double>(a[i + k]) * b[i + k];
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < count; ++i) total += static_cast<double>(a[i]) * b[i];
  return total;
}

/// 1 where both are the same zero vector: a layer that changes nothing has no angle.
double cosine(double ab, double aa, double bb) {
  if (aa == 0 && bb == 0) return 1;
  if (aa == 0 || bb == 0) return 0;
  return std::clamp(ab / std::sqrt(aa * bb), -1.0, 1.0);
}

double angle(double cosine_value) {
  return std::acos(cosine_value) / std::numbers::pi;
}

double ratio(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : 0;
}

/// All inner products that the measures of one token need.
struct Token {
  const WindowStreams& streams;
  std::size_t place, width;
  const float* state(std::size_t l) const { return streams.states[l].data() + place * width; }
  const float* middle(std::size_t l) const { return streams.middles[l].data() + place * width; }
};

void add_halves(const Token& token, std::size_t l, LayerSums& sums) {
  const float* h = token.state(l);
  const float* mid = token.middle(l);
  const float* next = token.state(l + 1);
  double hh = 0, aa = 0, mm = 0, ha = 0, middle = 0, mid_m = 0, dd = 0, hd = 0;
  for (std::size_t i = 0; i < token.width; ++i) {
    const double x = h[i], a = static_cast<double>(mid[i]) - h[i],
                 m = static_cast<double>(next[i]) - mid[i], d = a + m;
    hh += x * x;
    aa += a * a;
    mm += m * m;
    ha += x * a;
    middle += static_cast<double>(mid[i]) * mid[i];
    mid_m += static_cast<double>(mid[i]) * m;
    dd += d * d;
    hd += x * d;
  }
  sums.norm += std::sqrt(hh);
  sums.attention_norm += std::sqrt(aa);
  sums.ffn_norm += std::sqrt(mm);
  sums.attention_share += ratio(std::sqrt(aa), std::sqrt(hh));
  sums.ffn_share += ratio(std::sqrt(mm), std::sqrt(middle));
  sums.share += ratio(std::sqrt(dd), std::sqrt(hh));
  sums.attention_cosine += aa > 0 ? cosine(ha, hh, aa) : 0;
  sums.ffn_cosine += mm > 0 ? cosine(mid_m, middle, mm) : 0;
  sums.cosine += dd > 0 ? cosine(hd, hh, dd) : 0;
}

void add_token(const Token& token, WindowGeometry& g) {
  const std::size_t depth = g.layers.size(), D = token.width;
  // Gram matrix of all streams of this token: every distance and angle comes from it.
  std::vector<std::vector<double>> gram(depth + 1, std::vector<double>(depth + 1));
  for (std::size_t i = 0; i <= depth; ++i) {
    for (std::size_t j = i; j <= depth; ++j) {
      gram[i][j] = gram[j][i] = dot(token.state(i), token.state(j), D);
    }
  }
  // Equal vectors have cosine 1 exactly: a layer that does nothing scores exactly 0.
  const auto same = [&](std::size_t i, std::size_t j) {
    return gram[i][j] == gram[i][i] && gram[i][j] == gram[j][j];
  };
  const auto cos_of = [&](std::size_t i, std::size_t j) {
    return same(i, j) ? 1 : cosine(gram[i][j], gram[i][i], gram[j][j]);
  };
  const double whole = gram[depth][depth] - 2 * gram[0][depth] + gram[0][0];
  for (std::size_t l = 0; l < depth; ++l) {
    LayerSums& sums = g.layers[l];
    const double c = cos_of(l, l + 1);
    sums.influence += 1 - c;
    sums.angle += angle(c);
    for (std::size_t n = 1; l + n <= depth; ++n) g.distance[l][n - 1] += angle(cos_of(l, l + n));
    if (l + 2 <= depth) {
      const double steps =
          gram[l + 1][l + 2] - gram[l + 1][l + 1] - gram[l][l + 2] + gram[l][l + 1];
      const double first = gram[l + 1][l + 1] - 2 * gram[l][l + 1] + gram[l][l];
      const double second = gram[l + 2][l + 2] - 2 * gram[l + 1][l + 2] + gram[l + 1][l + 1];
      sums.turn += first > 0 && second > 0 ? angle(cosine(steps, first, second)) : 0.5;
    }
    const double towards = gram[l + 1][depth] - gram[l + 1][0] - gram[0][depth] + gram[0][0];
    sums.progress += ratio(towards, whole);
    add_halves(token, l, sums);
  }
}

WindowGeometry empty_geometry(std::size_t depth) {
  WindowGeometry g;
  g.layers.resize(depth);
  for (std::size_t l = 0; l < depth; ++l) g.distance.emplace_back(depth - l, 0.0);
  return g;
}

void add_sums(const WindowGeometry& from, WindowGeometry& to) {
  for (std::size_t l = 0; l < to.layers.size(); ++l) {
    for (const auto field : kTokenSums) to.layers[l].*field += from.layers[l].*field;
    for (std::size_t n = 0; n < to.distance[l].size(); ++n) {
      to.distance[l][n] += from.distance[l][n];
    }
  }
}

void measure_magnitudes(const std::vector<float>& state, double& largest, double& median) {
  std::vector<float> magnitudes(state.size());
  std::transform(state.begin(), state.end(), magnitudes.begin(),
                 [](float x) { return std::abs(x); });
  largest = *std::max_element(magnitudes.begin(), magnitudes.end());
  const auto middle = magnitudes.begin() + std::ssize(magnitudes) / 2;
  std::nth_element(magnitudes.begin(), middle, magnitudes.end());
  median = *middle;
}

}  // namespace

double influence_sum(const std::vector<float>& h, const std::vector<float>& next,
                     std::int64_t width) {
  const std::size_t D = as_size(width);
  double sum = 0;
  for (std::size_t begin = D; begin < h.size(); begin += D) {
    const float* a = h.data() + begin;
    const float* b = next.data() + begin;
    sum += 1 - cosine(dot(a, b, D), dot(a, a, D), dot(b, b, D));
  }
  return sum;
}

WindowGeometry measure_geometry(const WindowStreams& streams, std::int64_t width,
                                unsigned threads) {
  const std::size_t depth = streams.middles.size(), D = as_size(width);
  const std::size_t T = streams.states.front().size() / D;
  WindowGeometry g = empty_geometry(depth);
  g.tokens = as_double(T - 1);
  g.largest.resize(depth + 1);
  g.median.resize(depth + 1);
  const std::size_t blocks = (T - 1 + kTokenBlock - 1) / kTokenBlock;
  std::vector<WindowGeometry> parts(blocks, empty_geometry(depth));
  run_tasks(threads, blocks + depth + 1, [&](std::size_t task, std::size_t) {
    if (task >= blocks) {
      const std::size_t l = task - blocks;
      return measure_magnitudes(streams.states[l], g.largest[l], g.median[l]);
    }
    const std::size_t begin = 1 + task * kTokenBlock, end = std::min(T, begin + kTokenBlock);
    for (std::size_t t = begin; t < end; ++t) add_token({streams, t, D}, parts[task]);
  });
  for (const WindowGeometry& part : parts) add_sums(part, g);
  for (std::size_t l = 0; l < depth; ++l) {
    const float* a = streams.states[l].data();
    const float* b = streams.states[l + 1].data();
    g.layers[l].first_influence = 1 - cosine(dot(a, b, D), dot(a, a, D), dot(b, b, D));
  }
  return g;
}

}  // namespace fathom::probe
