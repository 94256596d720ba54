// The deviations of noise, shapes and bend that the runs make most likely (REML), at a given size
// of misfit.
//
// The surface is linearised about its current parameters, which makes the model a linear mixed one:
// theta joins the coefficients with its own prior, and the marginal likelihood and its gradient are
// exact. By Fisher's identity, with E the posterior mean of the whitened residual's outer product,
// d ln p / d phi = -tr[C^-1 dR C^-T (I - E)] / 2 for a parameter of R = C C'.
#pragma once

#include "fits/surface_likelihood.h"

namespace fathom::fits {

/// The surface about a point: rows = means - penalty + jacobian (theta - prior mean).
struct LinearSurface {
  Eigen::VectorXd response;  // row means less the linear surface's values at the prior's mean
  Eigen::MatrixXd jacobian;
  Eigen::VectorXd precision;  // of the prior
};
LinearSurface linearise(const SurfaceLikelihood& likelihood, const DepthSurface& surface,
                        const Eigen::VectorXd& parameters, const DepthSurface::Prior& prior);

/// Scales before any run was seen.
SurfaceScales first_scales(const SurfaceLikelihood& likelihood, double log_misfit);

/// ln of the marginal likelihood times the scales' prior; the gradient with respect to log_noise,
/// log_depths, log_shape, log_bend, noise_by_size and, where lengths differ, noise_by_length,
/// length_logit.
double scales_objective(const SurfaceLikelihood& likelihood, const LinearSurface& surface,
                        const SurfaceScales& scales, Eigen::VectorXd& gradient);

/// The scales of the highest objective, from `start`; its misfit stays fixed.
SurfaceScales fit_scales(const SurfaceLikelihood& likelihood, const LinearSurface& surface,
                         const SurfaceScales& start);

/// ln prior density of the scales except the misfit, up to a constant.
double log_scales_prior(const SurfaceLikelihood& likelihood, const SurfaceScales& scales);

}  // namespace fathom::fits
