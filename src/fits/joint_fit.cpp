#include "fits/joint_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/counts.h"
#include "core/random.h"
#include "fits/minimise.h"
#include "fits/statistics.h"

namespace fathom::fits {
namespace {

constexpr double kWideDelta = 0.03;
constexpr int kWideSteps = 200;
constexpr int kSharpSteps = 2000;
constexpr std::size_t kPolished = 12;

Minimum descend(const JointObjective& objective, const Eigen::VectorXd& start, double delta,
                int steps) {
  return minimise_bfgs(
      [&](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
        return objective.value(x, delta, &gradient);
      },
      start, steps);
}

/// From a wide objective to the sharp one by factors of about three.
Minimum sharpen(const JointObjective& objective, Eigen::VectorXd x, double from, double delta) {
  for (double width = from; width > 1.5 * delta; width /= 3.2) {
    x = descend(objective, x, width, kWideSteps).x;
  }
  return descend(objective, x, delta, kSharpSteps);
}

Eigen::VectorXd random_start(const JointObjective& objective, const RandomStream& random) {
  const JointForm& form = objective.form();
  const std::ptrdiff_t terms = std::ssize(form.terms());
  std::uint64_t next = 0;
  // Shares of the loss: exponential variates, the constant's counted double.
  std::vector<double> shares;
  double total = 0;
  for (std::ptrdiff_t k = 0; k <= terms; ++k) {
    const double share = -std::log(1 - random.uniform(next++)) * (k == terms ? 2 : 1) + 1e-3;
    shares.push_back(share);
    total += share;
  }
  const double log_loss = objective.log_losses().mean();
  Eigen::VectorXd start = Eigen::VectorXd::Zero(form.size());
  for (std::ptrdiff_t k = 0; k < terms; ++k) {
    const double exponent = 0.05 + 1.15 * random.uniform(next++);
    start[2 * k] = std::log(shares[as_size(k)] / total) + log_loss +
                   exponent * objective.mean_log(static_cast<int>(k));
    start[2 * k + 1] = exponent;
  }
  start[start.size() - 1] = std::log(shares.back() / total) + log_loss;
  return start;
}

/// The same law with phi = 0 between the last term and the constant.
Eigen::VectorXd with_interaction(const Eigen::VectorXd& additive) {
  Eigen::VectorXd wider(additive.size() + 1);
  wider << additive.head(additive.size() - 1), 0, additive[additive.size() - 1];
  return wider;
}

double mean_abs(const Eigen::VectorXd& values) {
  return values.cwiseAbs().mean();
}

/// Independent runs less coefficients, at least three.
double degrees_left(const JointFit& fit) {
  return std::max(3.0, as_double(fit.independent) - fit.form.size());
}

using LayersAndWidth = std::pair<std::int64_t, std::int64_t>;
LayersAndWidth shape_of(const RunPoint& point) {
  return {point.layers, point.width};
}

}  // namespace

std::optional<JointFit> fit_joint(std::span<const RunPoint> points, const JointForm& form,
                                  const JointOptions& options, std::string& reason) {
  return JointFits(points, options).fit(form, reason);
}

std::optional<JointFit> JointFits::fit(const JointForm& form, std::string& reason) {
  auto place = known_.find(form.name());
  if (place == known_.end()) place = known_.emplace(form.name(), search(form)).first;
  if (!place->second.fit) reason = place->second.reason;
  return place->second.fit;
}

JointFits::Known JointFits::search(const JointForm& form) {
  if (points_.size() < as_size(form.size()) + 3) {
    return {std::nullopt, fmt::format("{} runs for the {} coefficients of {}", points_.size(),
                                      form.size(), form.name())};
  }
  const JointObjective objective(form, points_);
  std::vector<Minimum> coarse;
  for (std::size_t s = 0; s < options_.starts; ++s) {
    const RandomStream random(options_.seed, s);
    coarse.push_back(descend(objective, random_start(objective, random), kWideDelta, kWideSteps));
  }
  std::sort(coarse.begin(), coarse.end(),
            [](const Minimum& a, const Minimum& b) { return a.value < b.value; });
  JointFit fit;
  fit.form = form;
  fit.runs = points_.size();
  std::vector<Minimum> kept;
  for (const Minimum& minimum : coarse) {
    if (kept.size() >= kPolished) break;
    const Minimum sharp = sharpen(objective, minimum.x, kWideDelta, options_.delta);
    if (!std::isfinite(sharp.value) || !JointLaw(form, sharp.x).physical()) {
      ++fit.rejected;
      continue;
    }
    kept.push_back(sharp);
  }
  if (form.interaction) {
    // The additive law is this one with phi = 0: never end above it.
    JointForm additive = form;
    additive.interaction = false;
    std::string ignored;
    if (const auto plain = this->fit(additive, ignored)) {
      const Minimum sharp = sharpen(objective, with_interaction(plain->coefficients),
                                    10 * options_.delta, options_.delta);
      if (JointLaw(form, sharp.x).physical()) kept.push_back(sharp);
    }
  }
  if (kept.empty()) {
    return {std::nullopt, fmt::format("every minimum of {} has a negative exponent", form.name())};
  }
  const Minimum& best =
      *std::min_element(kept.begin(), kept.end(),
                        [](const Minimum& a, const Minimum& b) { return a.value < b.value; });
  for (const Minimum& minimum : kept) fit.reached += minimum.value <= 1.001 * best.value;
  fit.coefficients = best.x;
  fit.objective = best.value;
  fit.mean_error = mean_abs(objective.residuals(best.x));
  fit.aic = 2 * as_double(fit.runs) * std::log(fit.mean_error) + 2 * form.size();
  return {std::move(fit), ""};
}

HeldOutShapes::HeldOutShapes(std::span<const RunPoint> points, const JointOptions& options,
                             std::size_t shapes, double tokens_above)
    : shapes_(shapes) {
  std::map<LayersAndWidth, double> sizes;
  for (const RunPoint& point : points) sizes[shape_of(point)] = point.params;
  if (sizes.size() < shapes + 3) return;
  std::vector<std::pair<double, LayersAndWidth>> order;
  for (const auto& [shape, size] : sizes) order.emplace_back(size, shape);
  std::sort(order.rbegin(), order.rend());
  std::set<LayersAndWidth> out;
  for (std::size_t i = 0; i < shapes; ++i) out.insert(order[i].second);
  for (const RunPoint& point : points) {
    if (!out.contains(shape_of(point))) {
      seen_.push_back(point);
    } else if (point.tokens > tokens_above) {
      left_out_.push_back(point);
    }
  }
  fits_.emplace(seen_, options);
}

void HeldOutShapes::judge(JointFit& fit) {
  std::string reason;
  const auto refit = fits_ ? fits_->fit(fit.form, reason) : std::nullopt;
  if (!refit || left_out_.empty()) return;
  std::vector<double> errors;
  for (const RunPoint& point : left_out_) {
    const double predicted = refit->law().loss(as_double(point.layers), as_double(point.width),
                                               point.params, point.tokens);
    errors.push_back(std::fabs(predicted / point.loss - 1));
  }
  fit.holdout_error = mean(errors);
  fit.holdout_runs = errors.size();
  fit.holdout_shapes = shapes_;
}

void bootstrap_joint(std::span<const RunPoint> points, const JointOptions& options,
                     std::size_t replicates, JointFit& fit) {
  JointObjective objective(fit.form, points);
  const Eigen::VectorXd residuals = objective.residuals(fit.coefficients);
  const Eigen::VectorXd fitted = objective.log_losses() - residuals;
  const auto runs = as_size(residuals.size());
  std::map<LayersAndWidth, std::set<double>> trajectories;
  for (const RunPoint& point : points) trajectories[shape_of(point)].insert(point.tokens);
  std::map<LayersAndWidth, std::uint64_t> cluster;
  bool clustered = false;
  for (const auto& [shape, tokens] : trajectories) {
    cluster.emplace(shape, cluster.size());
    clustered = clustered || tokens.size() > 1;
  }
  fit.independent = clustered ? cluster.size() : points.size();
  // Residuals of a fit to absolute errors shrink by (n - k) / n, those of least squares by its
  // root; the first is the safer side.
  const double scale = std::sqrt(as_double(fit.independent) / degrees_left(fit) * as_double(runs) /
                                 std::max(1.0, as_double(runs) - fit.form.size()));
  fit.replicates.clear();
  for (std::size_t r = 0; r < replicates; ++r) {
    const RandomStream random(options.seed ^ 0x626f6f74, r);
    Eigen::VectorXd drawn = fitted;
    for (std::uint64_t i = 0; i < runs; ++i) {
      const auto at = as_signed(i);
      const double noise =
          clustered ? residuals[at] * (random.bits(cluster[shape_of(points[i])]) & 1 ? 1 : -1)
                    : residuals[as_signed(random.below(i, runs))];
      drawn[at] += scale * noise;
    }
    objective.set_log_losses(drawn);
    const Minimum found = sharpen(objective, fit.coefficients, 10 * options.delta, options.delta);
    if (JointLaw(fit.form, found.x).physical()) fit.replicates.push_back(found.x);
  }
  fit.intervals.clear();
  for (int k = 0; k < fit.form.size(); ++k) {
    fit.intervals.push_back(
        replicate_interval(fit, [k](const JointLaw& law) { return law.coefficients()[k]; }));
  }
}

Interval widened_interval(const JointFit& fit, double estimate, const std::vector<double>& sample) {
  if (sample.size() < 20) return {-INFINITY, INFINITY};
  // The wider of percentiles and a normal about the estimate, each side separately; the normal's
  // spread is from the median deviation, which a few runaway refits do not move.
  const double student = student_quantile(0.975, degrees_left(fit));
  const double normal = 1.959964;
  const double half = normal * 1.4826 * median_deviation(sample);
  const double below = std::max(half, estimate - quantile(sample, 0.025));
  const double above = std::max(half, quantile(sample, 0.975) - estimate);
  return {estimate - student / normal * below, estimate + student / normal * above};
}

}  // namespace fathom::fits
