// One form of the surface at given scales: the parameters of the highest posterior density, and the
// posterior's course from there.
#pragma once

#include <Eigen/Core>
#include <optional>

#include "fits/crest.h"
#include "fits/surface_likelihood.h"

namespace fathom::fits {

/// One form at one size of misfit, about the parameters of the highest posterior density.
struct SurfaceMode {
  Eigen::VectorXd parameters;
  Eigen::MatrixXd information;  // of the parameters, the prior included; the rest integrated out
  double log_likelihood = 0;    // ln p(y | parameters, scales)
  double log_posterior = 0;     // with the prior of the parameters
  double weight = 0;            // share of this misfit in the form's posterior
};

/// The prior of a form's parameters before these runs.
DepthSurface::Prior surface_prior(const SurfaceData& data, const DepthSurface& surface);
/// ln p(parameters | y, scales), up to a constant: one value of SurfaceMode::log_posterior.
double log_posterior(const SurfaceLikelihood& likelihood,
                     const SurfaceLikelihood::Prepared& prepared, const DepthSurface& surface,
                     const Eigen::VectorXd& parameters);

/// The most likely of a coarse grid of starts.
Eigen::VectorXd best_start(const SurfaceLikelihood& likelihood,
                           const SurfaceLikelihood::Prepared& prepared,
                           const DepthSurface& surface);

/// By damped Gauss-Newton steps. `held`: a parameter that stays as it is in `start`.
SurfaceMode find_mode(const SurfaceLikelihood& likelihood,
                      const SurfaceLikelihood::Prepared& prepared, const DepthSurface& surface,
                      const Eigen::VectorXd& start,
                      std::optional<Eigen::Index> held = std::nullopt);

/// Along ln(pq), how fast both sides of the bowl steepen: the parameter that runs determine least.
/// Runs far from the best depth fix the penalty there, so all others follow it on a bent line.
Crest crest_of(const SurfaceLikelihood& likelihood, const SurfaceLikelihood::Prepared& prepared,
               const DepthSurface& surface, const SurfaceMode& mode);

}  // namespace fathom::fits
