// Fitting the joint loss law: many starts, descent, rejection of unphysical minima, held-out error,
// choice of form, bootstrap.
//
// Starts draw exponents from [0.05, 1.2] and split the loss at the centre of the data between the
// terms at random; each first descends a wide Huber objective (nearly least squares), the best then
// the sharp one. A minimum with a negative exponent (a law in which more width hurts) is rejected.
// Forms are compared by AIC under the Laplace likelihood that corresponds to a sharp Huber
// objective: AIC = 2 n ln(mean |ln loss - ln prediction|) + 2 k.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fits/joint_form.h"
#include "laws/law.h"

namespace fathom::fits {

struct JointOptions {
  double delta = 1e-3;  // Huber, on ln loss
  std::size_t starts = 60;
  std::uint64_t seed = 1;
};

struct JointFit {
  JointForm form;
  Eigen::VectorXd coefficients;
  double objective = 0;
  double mean_error = 0;  // mean |ln loss - ln prediction|
  double aic = 0;
  std::size_t runs = 0;
  std::size_t reached = 0;              // starts that ended within 0.1 % of the best objective
  std::size_t rejected = 0;             // starts that ended at an unphysical minimum
  std::optional<double> holdout_error;  // mean relative error on the largest shapes left out
  std::size_t holdout_runs = 0;
  std::size_t holdout_shapes = 0;
  std::size_t independent = 0;              // runs, or shapes where runs are trajectories
  std::vector<Eigen::VectorXd> replicates;  // bootstrap
  std::vector<Interval> intervals;          // 95 %, one per coefficient

  JointLaw law() const { return {form, coefficients}; }
};

/// Fits of several forms to the same runs. A form that another one starts from (the additive law is
/// the interacting one with phi = 0) is fitted once.
class JointFits {
 public:
  /// The runs must outlive this.
  JointFits(std::span<const RunPoint> points, const JointOptions& options)
      : points_(points), options_(options) {}

  /// Absent, with the reason, when every minimum is unphysical or the runs are too few.
  std::optional<JointFit> fit(const JointForm& form, std::string& reason);
  /// How many forms were fitted from all their starts.
  std::size_t count() const { return known_.size(); }

 private:
  struct Known {
    std::optional<JointFit> fit;
    std::string reason;
  };
  Known search(const JointForm& form);

  std::span<const RunPoint> points_;
  JointOptions options_;
  std::map<std::string, Known> known_;  // by the form's name
};

std::optional<JointFit> fit_joint(std::span<const RunPoint> points, const JointForm& form,
                                  const JointOptions& options, std::string& reason);

/// The `shapes` largest shapes are left out, forms are refitted without them, and their runs of
/// more than `tokens_above` tokens are predicted.
class HeldOutShapes {
 public:
  HeldOutShapes(std::span<const RunPoint> points, const JointOptions& options, std::size_t shapes,
                double tokens_above);
  HeldOutShapes(const HeldOutShapes&) = delete;
  HeldOutShapes& operator=(const HeldOutShapes&) = delete;

  /// Fills the holdout fields; leaves them unset where too few shapes remain.
  void judge(JointFit& fit);

 private:
  std::size_t shapes_ = 0;
  std::vector<RunPoint> seen_, left_out_;
  std::optional<JointFits> fits_;  // to `seen_`; absent when too few are left
};

/// Refits to perturbed losses, warm-started; fills replicates and intervals. Runs of one shape at
/// several token counts are one trajectory: their residuals flip sign together (wild cluster
/// bootstrap) and shapes, not runs, are the sample. Otherwise residuals are resampled one by one.
/// Residuals are scaled up for the coefficients they lost.
void bootstrap_joint(std::span<const RunPoint> points, const JointOptions& options,
                     std::size_t replicates, JointFit& fit);

/// The 95 % interval of a quantity from its replicates, widened for the degrees of freedom spent.
/// Give positive quantities in logarithms.
template <class Quantity>
Interval replicate_interval(const JointFit& fit, Quantity&& quantity);
Interval widened_interval(const JointFit& fit, double estimate, const std::vector<double>& sample);

template <class Quantity>
Interval replicate_interval(const JointFit& fit, Quantity&& quantity) {
  std::vector<double> sample;
  for (const Eigen::VectorXd& replicate : fit.replicates) {
    sample.push_back(quantity(JointLaw(fit.form, replicate)));
  }
  return widened_interval(fit, quantity(fit.law()), sample);
}

}  // namespace fathom::fits
