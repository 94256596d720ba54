// All forms of the surface fitted to all runs, as weighted draws of their parameters.
//
// The size of misfit is integrated over a grid; at each grid point the other scales are those of
// the highest marginal likelihood under the free form (surface_scales.h). Given the scales,
// a form's parameters are found (surface_mode.h) and drawn about that point; importance weights
// make the draws those of the exact posterior (adaptive_sampling.h). The common scale of all noise
// is integrated too, which turns the normal likelihood into a Student one with the residual degrees
// of freedom. A form's evidence is the integral of likelihood times prior over its parameters and
// the misfit. The exponential and the power law have the same coordinates and priors, so their odds
// are those of the data.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fits/adaptive_sampling.h"
#include "fits/surface_likelihood.h"
#include "fits/surface_mode.h"

namespace fathom::fits {

struct SurfaceOptions {
  std::size_t draws = 750;  // of each form in a round (adaptive_sampling.h)
  std::uint64_t seed = 1;
};

struct FormPosterior {
  DepthSurface surface;
  std::vector<SurfaceMode> modes;   // by misfit
  std::vector<WeightedDraw> draws;  // a draw's mode is its misfit
  double log_evidence = 0;
  double effective_draws = 0;

  const SurfaceMode& best() const;
  std::size_t best_misfit() const;
};

class SurfacePosterior {
 public:
  /// Absent, with the reason, when the runs cannot support a surface.
  static std::optional<SurfacePosterior> fit(std::span<const RunPoint> points,
                                             const SurfaceOptions& options, std::string& reason);

  const SurfaceLikelihood& likelihood() const { return likelihood_; }
  const SurfaceData& data() const { return likelihood_.data(); }
  const std::vector<SurfaceLikelihood::Prepared>& misfits() const { return misfits_; }
  const FormPosterior& form(LawForm form) const { return forms_[static_cast<std::size_t>(form)]; }
  const std::vector<FormPosterior>& forms() const { return forms_; }
  /// Posterior probability of a form, all four equally likely before.
  double probability(LawForm form) const;
  int degrees_of_freedom() const { return degrees_of_freedom_; }

  DepthSurface::Prior prior(const DepthSurface& surface) const {
    return surface_prior(data(), surface);
  }

 private:
  explicit SurfacePosterior(SurfaceData data) : likelihood_(std::move(data)) {}
  void fit_misfits();
  /// False when the numbers overflow: a run lies absurdly far from the others.
  bool fit_form(LawForm form, const SurfaceOptions& options);
  void draw(FormPosterior& form, const SurfaceOptions& options) const;

  SurfaceLikelihood likelihood_;
  std::vector<double> log_misfit_priors_;
  std::vector<SurfaceLikelihood::Prepared> misfits_;
  std::vector<Eigen::VectorXd> free_modes_;  // of the free form, by misfit
  std::vector<FormPosterior> forms_;
  int degrees_of_freedom_ = 1;
};

}  // namespace fathom::fits
