#include "pretrained/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/counts.h"

namespace fathom::pretrained {
namespace {

double llama3_scaled(const RotarySpec& s, double inverse) {
  const double wave = 2 * std::numbers::pi / inverse;
  if (wave > s.original_context / s.low_frequency) return inverse / s.factor;
  if (wave < s.original_context / s.high_frequency) return inverse;
  const double smooth =
      (s.original_context / wave - s.low_frequency) / (s.high_frequency - s.low_frequency);
  return (1 - smooth) * inverse / s.factor + smooth * inverse;
}

/// How far pair j is scaled under yarn: 0 not at all, 1 wholly.
class YarnRamp {
 public:
  explicit YarnRamp(const RotarySpec& s) {
    const auto pair = [&](double turns) {
      return as_double(s.size) * std::log(s.original_context / (turns * 2 * std::numbers::pi)) /
             (2 * std::log(s.theta));
    };
    low_ = pair(s.beta_fast);
    high_ = pair(s.beta_slow);
    if (s.truncate) {
      low_ = std::floor(low_);
      high_ = std::ceil(high_);
    }
    low_ = std::max(low_, 0.0);
    high_ = std::min(high_, as_double(s.size - 1));
    if (low_ == high_) high_ += 0.001;
  }
  double operator()(double j) const { return std::clamp((j - low_) / (high_ - low_), 0.0, 1.0); }

 private:
  double low_, high_;
};

double yarn_growth(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

double amplitude_of(const RotarySpec& s) {
  if (s.amplitude > 0) return s.amplitude;
  if (s.kind == RotaryKind::yarn) {
    if (s.mscale > 0 && s.mscale_all > 0) {
      return yarn_growth(s.factor, s.mscale) / yarn_growth(s.factor, s.mscale_all);
    }
    return yarn_growth(s.factor, 1);
  }
  if (s.kind == RotaryKind::longrope && s.factor > 1) {
    return std::sqrt(1 + std::log(s.factor) / std::log(s.original_context));
  }
  return 1;
}

}  // namespace

RotaryTable rotary_table(const RotarySpec& s, std::int64_t tokens) {
  const double R = as_double(s.size), T = as_double(tokens);
  double theta = s.theta;
  if (s.kind == RotaryKind::dynamic && T > s.original_context) {
    theta *= std::pow(s.factor * T / s.original_context - (s.factor - 1), R / (R - 2));
  }
  RotaryTable table;
  table.amplitude = amplitude_of(s);
  const YarnRamp ramp(s);
  const std::vector<double>& stretch = T > s.original_context ? s.long_factors : s.short_factors;
  for (std::int64_t j = 0; j < s.size / 2; ++j) {
    double inverse = std::pow(theta, -2.0 * as_double(j) / R);
    switch (s.kind) {
      case RotaryKind::linear:
        inverse /= s.factor;
        break;
      case RotaryKind::llama3:
        inverse = llama3_scaled(s, inverse);
        break;
      case RotaryKind::yarn:
        inverse *= 1 - ramp(as_double(j)) + ramp(as_double(j)) / s.factor;
        break;
      case RotaryKind::longrope:
        inverse /= stretch.at(as_size(j));
        break;
      case RotaryKind::plain:
      case RotaryKind::dynamic:
        break;
    }
    table.inverse.push_back(inverse);
  }
  return table;
}

}  // namespace fathom::pretrained
