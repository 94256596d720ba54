#include "fits/surface_posterior.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <array>
#include <cmath>
#include <numbers>

#include "fits/surface_scales.h"

namespace fathom::fits {
namespace {

// Misfit in units of the noise: the ends are "none to speak of" and "nothing but misfit".
constexpr std::array kMisfits{0.02, 0.45, 0.75, 1.2, 2.0, 3.5, 6.0};
// The fewest runs, depths and sizes for a surface: eight coefficients and something left over.
constexpr std::size_t kLeastRows = 10;
constexpr std::size_t kLeastDepths = 3;
constexpr std::size_t kLeastRungs = 3;
// Training lengths further apart than this, in ln T at one size, are a mistake in the table.
const double kMostLengthApart = std::log(1e4);

/// ln prior weight of each misfit: either there is none, or it is about twice the noise
/// (log-normal). Chosen on planted worlds so that intervals cover the truth about as often with a
/// hidden bend as without one (docs/fitting.md, section 8).
std::vector<double> misfit_priors() {
  constexpr double kNone = 0.45;
  constexpr double kMedian = 2;  // of the noise
  constexpr double kSpread = 0.6;
  std::vector<double> weights{0};
  double sum = 0;
  for (std::size_t k = 1; k < kMisfits.size(); ++k) {
    const double low = kMisfits[std::max<std::size_t>(1, k - 1)];
    const double high = kMisfits[std::min(k + 1, kMisfits.size() - 1)];
    const double t = std::log(kMisfits[k] / kMedian) / kSpread;
    weights.push_back(std::exp(-t * t / 2) * std::log(high / low));
    sum += weights.back();
  }
  std::vector<double> logarithms{std::log(kNone)};
  for (std::size_t k = 1; k < weights.size(); ++k) {
    logarithms.push_back(std::log((1 - kNone) * weights[k] / sum));
  }
  return logarithms;
}

}  // namespace

const SurfaceMode& FormPosterior::best() const {
  return modes[best_misfit()];
}

std::size_t FormPosterior::best_misfit() const {
  std::size_t best = 0;
  for (std::size_t k = 0; k < modes.size(); ++k) {
    if (modes[k].weight > modes[best].weight) best = k;
  }
  return best;
}

void SurfacePosterior::fit_misfits() {
  log_misfit_priors_ = misfit_priors();
  const SurfaceData& data = likelihood_.data();
  const DepthSurface surface(LawForm::free, data.centre(), data.length_rule.differs);
  const DepthSurface::Prior own_prior = prior(surface);
  SurfaceScales scales = first_scales(likelihood_, std::log(kMisfits[1]));
  Eigen::VectorXd parameters = best_start(likelihood_, likelihood_.prepare(scales), surface);
  for (const double misfit : kMisfits) {
    scales.log_misfit = std::log(misfit);
    const int rounds = misfits_.empty() ? 6 : 3;
    for (int round = 0; round < rounds; ++round) {
      const auto prepared = likelihood_.prepare(scales);
      parameters = find_mode(likelihood_, prepared, surface, parameters).parameters;
      scales =
          fit_scales(likelihood_, linearise(likelihood_, surface, parameters, own_prior), scales);
    }
    misfits_.push_back(likelihood_.prepare(scales));
    free_modes_.push_back(parameters);
  }
}

bool SurfacePosterior::fit_form(LawForm form, const SurfaceOptions& options) {
  const SurfaceData& data = likelihood_.data();
  FormPosterior result{DepthSurface(form, data.centre(), data.length_rule.differs), {}, {}, 0, 0};
  const DepthSurface& surface = result.surface;
  const auto count = static_cast<double>(surface.size());
  std::vector<double> evidence;
  double most = -1e300;
  for (std::size_t k = 0; k < misfits_.size(); ++k) {
    // From the free form's parameters, which differ only in the law's own.
    Eigen::VectorXd start(surface.size());
    const Eigen::VectorXd& free = free_modes_[k];
    for (int i = 0; i < surface.law().size(); ++i) start[i] = free[i];
    start.tail(surface.size() - surface.law().size()) = free.tail(free.size() - 3);
    result.modes.push_back(find_mode(likelihood_, misfits_[k], surface, start));
    const SurfaceMode& mode = result.modes.back();
    const double log_determinant =
        2 * mode.information.llt().matrixLLT().diagonal().array().log().sum();
    // The other scales are at their mode; how sharp that mode is differs little between misfits.
    evidence.push_back(mode.log_posterior + count / 2 * std::log(2 * std::numbers::pi) -
                       log_determinant / 2 + log_misfit_priors_[k] +
                       log_scales_prior(likelihood_, misfits_[k].scales));
    most = std::max(most, evidence.back());
  }
  double sum = 0;
  for (const double value : evidence) sum += std::exp(value - most);
  for (std::size_t k = 0; k < evidence.size(); ++k) {
    result.modes[k].weight = std::exp(evidence[k] - most) / sum;
  }
  if (!(sum > 0 && std::isfinite(sum))) return false;
  result.log_evidence = most + std::log(sum);
  draw(result, options);
  if (!std::isfinite(result.log_evidence)) return false;
  forms_.push_back(std::move(result));
  return true;
}

void SurfacePosterior::draw(FormPosterior& form, const SurfaceOptions& options) const {
  const double dimension = form.surface.size();
  const double degrees = degrees_of_freedom_;
  const auto log_density = [&](std::size_t k, const Eigen::VectorXd& parameters) {
    const double there = log_posterior(likelihood_, misfits_[k], form.surface, parameters);
    const double drop = 2 * (form.modes[k].log_posterior - there);
    // Student in place of normal: the common scale is integrated out.
    return drop > -degrees ? -(degrees + dimension) / 2 * std::log1p(drop / degrees) : -1e300;
  };
  std::vector<SampledMode> modes;
  for (std::size_t k = 0; k < form.modes.size(); ++k) {
    const SurfaceMode& mode = form.modes[k];
    modes.push_back({mode.parameters, mode.information, mode.weight, {}});
    if (mode.weight < kLeastModeShare) continue;
    modes.back().crest = crest_of(likelihood_, misfits_[k], form.surface, mode);
  }
  const auto stream = 1000 + static_cast<std::uint64_t>(form.surface.law().form());
  WeightedDraws sample = sample_modes(modes, log_density, options.draws, options.seed, stream);
  form.draws = std::move(sample.draws);
  form.effective_draws = sample.effective;
  // The extra mass of a Student density over a normal one of the same information.
  form.log_evidence += sample.log_correction + std::lgamma((degrees + dimension) / 2) -
                       std::lgamma(degrees / 2) - dimension / 2 * std::log(degrees / 2);
}

double SurfacePosterior::probability(LawForm form) const {
  double most = -1e300;
  for (const FormPosterior& f : forms_) most = std::max(most, f.log_evidence);
  double sum = 0;
  for (const FormPosterior& f : forms_) sum += std::exp(f.log_evidence - most);
  return std::exp(this->form(form).log_evidence - most) / sum;
}

std::optional<SurfacePosterior> SurfacePosterior::fit(std::span<const RunPoint> points,
                                                      const SurfaceOptions& options,
                                                      std::string& reason) {
  SurfaceData data = fold_runs(points);
  if (data.depths.size() < kLeastDepths) {
    reason = fmt::format("{} depths; the best of them needs {}", data.depths.size(), kLeastDepths);
    return std::nullopt;
  }
  if (data.rungs.size() < kLeastRungs) {
    reason = fmt::format("{} sizes; a law needs {}", data.rungs.size(), kLeastRungs);
    return std::nullopt;
  }
  if (data.shapes.size() < kLeastRows) {
    reason = fmt::format("{} shapes; a surface needs {}", data.shapes.size(), kLeastRows);
    return std::nullopt;
  }
  if (data.length.high - data.length.low > kMostLengthApart) {
    reason = "no surface follows training lengths over 10,000 times apart; is one of them wrong?";
    return std::nullopt;
  }
  SurfacePosterior posterior(std::move(data));
  const auto runs = static_cast<int>(posterior.data().runs);
  // Fixed coefficients, a surface's parameters and about half a deviation for each depth are
  // fitted.
  posterior.degrees_of_freedom_ =
      std::max(3, runs - static_cast<int>(posterior.likelihood_.columns().fixed()) - 6 -
                      static_cast<int>(posterior.data().depths.size()) / 2);
  posterior.fit_misfits();
  for (const LawForm form : kLawForms) {
    if (posterior.fit_form(form, options)) continue;
    reason = "no surface follows these runs; does one have a wrong size, length or loss?";
    return std::nullopt;
  }
  return posterior;
}

}  // namespace fathom::fits
