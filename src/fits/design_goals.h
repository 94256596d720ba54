// A goal in numbers: where the posterior puts it, and how it moves with the surface's parameters
// and coefficients.
#pragma once

#include <Eigen/Core>

#include "fits/run_design.h"
#include "fits/surface_draws.h"

namespace fathom::fits {

/// The form of the law under which the goal is followed.
LawForm goal_form(const DesignGoal& goal);

/// Estimate, interval, error and whether it is decided.
GoalState measure_goal(const SurfacePosterior& posterior, const SurfaceDraws& draws,
                       const DesignGoal& goal);

/// Derivatives of the goal with respect to the surface's parameters and the columns' coefficients;
/// of ln N for a crossing, of ln L for a best depth, of the free form's bend for the form.
Eigen::RowVectorXd goal_row(const SurfaceColumns& columns, const DepthSurface& surface,
                            const Eigen::VectorXd& parameters, double block_coefficient,
                            const DesignGoal& goal);

/// The standard error of that quantity at which the goal counts as decided.
double target_error(const Eigen::VectorXd& parameters, const DesignGoal& goal);

}  // namespace fathom::fits
