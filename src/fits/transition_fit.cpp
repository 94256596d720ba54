#include "fits/transition_fit.h"

#include <algorithm>
#include <cmath>

#include "fits/statistics.h"

namespace fathom::fits {
namespace {

constexpr int kScan = 400;

/// Delta over its standard error at ln N.
double gain_score(const CurveFamily& curves, std::size_t shallow, std::size_t deep, double x) {
  const Eigen::VectorXd row = curves.gain_row(shallow, deep, x);
  return row.dot(curves.coefficients()) / std::sqrt(curves.covariance(row, row));
}

double gain(const CurveFamily& curves, std::size_t shallow, std::size_t deep, double x) {
  return curves.gain_row(shallow, deep, x).dot(curves.coefficients());
}

/// The 95 % quantile of the bootstrap's |Delta* - Delta| over its own standard error at x.
double bootstrap_score(const CurveFamily& curves, std::size_t shallow, std::size_t deep, double x,
                       const std::vector<CurveFamily::Replicate>& replicates) {
  const Eigen::VectorXd row = curves.gain_row(shallow, deep, x);
  const double unit = std::sqrt(curves.covariance(row, row)) / curves.noise();
  std::vector<double> scores;
  for (const CurveFamily::Replicate& replicate : replicates) {
    const double shift = row.dot(replicate.coefficients - curves.coefficients());
    scores.push_back(std::fabs(shift) / (unit * replicate.noise));
  }
  return scores.empty() ? 0 : quantile(scores, 0.95);
}

/// The zero of f between a and b, where its signs differ.
template <class Function>
double bisect(Function&& f, double a, double b) {
  const bool rising = f(a) < 0;
  for (int step = 0; step < 60; ++step) {
    const double middle = (a + b) / 2;
    ((f(middle) < 0) == rising ? a : b) = middle;
  }
  return (a + b) / 2;
}

/// The decided sizes of a scan: +1 deeper wins, -1 shallower wins, 0 undecided.
struct Scan {
  std::vector<double> sizes;
  std::vector<int> winner;
};

Scan scan(const CurveFamily& curves, std::size_t shallow, std::size_t deep, double low, double high,
          double critical) {
  Scan result;
  for (int i = 0; i <= kScan; ++i) {
    const double x = low + (high - low) * i / kScan;
    const double score = gain_score(curves, shallow, deep, x);
    result.sizes.push_back(x);
    result.winner.push_back(score > critical ? 1 : score < -critical ? -1 : 0);
  }
  return result;
}

/// The edges of the undecided stretch: last win of the shallower, first win of the deeper. False
/// when wins alternate otherwise.
bool find_edges(const Scan& scan, std::optional<std::size_t>& last_shallow,
                std::optional<std::size_t>& first_deep) {
  for (std::size_t i = 0; i < scan.winner.size(); ++i) {
    if (scan.winner[i] < 0) {
      if (first_deep) return false;
      last_shallow = i;
    }
    if (scan.winner[i] > 0 && !first_deep) first_deep = i;
  }
  return true;
}

void place_crossing(const CurveFamily& curves, std::size_t s, std::size_t d, const Scan& scan,
                    std::size_t last_shallow, std::size_t first_deep, double critical,
                    Transition& transition) {
  const auto delta = [&](double x) { return gain(curves, s, d, x); };
  const double from = scan.sizes[last_shallow];
  const double to = scan.sizes[first_deep];
  const double x = bisect(delta, from, to);
  transition.status = TransitionStatus::crossing;
  transition.params = std::exp(x);
  transition.low = std::exp(bisect([&](double u) { return gain_score(curves, s, d, u) + critical; },
                                   from, scan.sizes[last_shallow + 1]));
  transition.high =
      std::exp(bisect([&](double u) { return gain_score(curves, s, d, u) - critical; },
                      scan.sizes[first_deep - 1], to));
  transition.width = curves.width(d, x);
  const Eigen::VectorXd row = curves.gain_row(s, d, x);
  const double slope = curves.gain_slope_row(s, d, x).dot(curves.coefficients());
  transition.log_error = std::sqrt(curves.covariance(row, row)) / std::fabs(slope);
}

Transition find_transition(const CurveFamily& curves, std::size_t s, std::size_t d,
                           const std::vector<CurveFamily::Replicate>& replicates) {
  const CurveFamily::Depth& shallow = curves.depths()[s];
  const CurveFamily::Depth& deep = curves.depths()[d];
  Transition transition;
  transition.shallow = shallow.layers;
  transition.deep = deep.layers;
  transition.adjacent = d == s + 1;
  const double low = std::max(shallow.low, deep.low);
  const double high = std::min(shallow.high, deep.high);
  transition.grid_low = std::exp(low);
  transition.grid_high = std::exp(high);
  if (!(high > low)) {
    transition.note = "the two depths share no range of sizes";
    return transition;
  }
  const double student = student_quantile(0.975, curves.degrees_of_freedom());
  const double critical =
      std::max(student, bootstrap_score(curves, s, d, (low + high) / 2, replicates));
  const Scan decided = scan(curves, s, d, low, high, critical);
  std::optional<std::size_t> last_shallow;
  std::optional<std::size_t> first_deep;
  if (!find_edges(decided, last_shallow, first_deep)) {
    transition.note = "the deeper network wins at small sizes and loses at larger ones";
  } else if (last_shallow && first_deep) {
    place_crossing(curves, s, d, decided, *last_shallow, *first_deep, critical, transition);
  } else if (first_deep) {
    transition.status = TransitionStatus::below_grid;
    transition.high = std::exp(decided.sizes[*first_deep]);
    transition.note = gain(curves, s, d, low) < 0
                          ? "the shallower network is ahead at the smallest sizes, within the noise"
                          : "the deeper network already wins; smaller sizes would show where it "
                            "starts";
  } else if (last_shallow) {
    transition.status = TransitionStatus::above_grid;
    transition.low = std::exp(decided.sizes[*last_shallow]);
    transition.note = gain(curves, s, d, high) > 0
                          ? "the deeper network is ahead at the largest sizes, within the noise"
                          : "the shallower network still wins; larger sizes would show where it "
                            "stops";
  } else {
    transition.note = "the difference is within the noise at every common size";
  }
  return transition;
}

}  // namespace

std::vector<Transition> find_transitions(const CurveFamily& curves,
                                         const std::vector<CurveFamily::Replicate>& replicates) {
  std::vector<Transition> transitions;
  const std::size_t depths = curves.depths().size();
  for (std::size_t s = 0; s < depths; ++s) {
    for (std::size_t d = s + 1; d < depths; ++d) {
      transitions.push_back(find_transition(curves, s, d, replicates));
    }
  }
  return transitions;
}

std::optional<double> shifted_crossing(const CurveFamily& curves, const CrossingPlace& place,
                                       const Eigen::VectorXd& coefficients) {
  double x = place.log_size;
  const double low = curves.depths()[place.deep].low - 1;
  const double high = curves.depths()[place.shallow].high + 1;
  for (int step = 0; step < 50; ++step) {
    const double value = curves.gain_row(place.shallow, place.deep, x).dot(coefficients);
    const double slope = curves.gain_slope_row(place.shallow, place.deep, x).dot(coefficients);
    if (!(slope > 0)) return std::nullopt;
    const double move = std::clamp(-value / slope, -0.5, 0.5);
    x += move;
    if (x < low || x > high) return std::nullopt;
    if (std::fabs(move) < 1e-10) return x;
  }
  return std::nullopt;
}

}  // namespace fathom::fits
