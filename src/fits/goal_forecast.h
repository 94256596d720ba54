// Predicts the errors of all goals of a design, and how new trajectories would change them, with
// linearised surfaces (linearised_mixture.h).
#pragma once

#include <span>
#include <vector>

#include "fits/design_candidates.h"
#include "fits/design_goals.h"
#include "fits/linearised_mixture.h"
#include "fits/surface_posterior.h"

namespace fathom::fits {

/// A trajectory that may be asked for: a shape trained to some lengths.
struct Candidate {
  CandidateShape shape;
  std::vector<double> lengths;
  double cost = 0;
  std::vector<std::size_t> sites;  // set by the forecast
};

class GoalForecast {
 public:
  /// For planning: with every size of misfit that the runs leave possible.
  static GoalForecast cautious(const SurfacePosterior& posterior,
                               std::vector<Candidate>& candidates,
                               const std::vector<GoalState>& states);
  /// For what no number of runs could achieve: with the least misfit the runs leave possible.
  static GoalForecast hopeful(const SurfacePosterior& posterior, std::vector<Candidate>& candidates,
                              const std::vector<GoalState>& states);

  /// Drop in twice the ln error if all these trajectories were run, summed over the undecided
  /// goals; a gain beyond the target does not count.
  double gain(std::span<const Candidate* const> candidates) const;
  /// Adds `times` seeds of it.
  void add(const Candidate& candidate, double times = 1);
  /// The predicted error: the posterior's, scaled by the change predicted since.
  double expected_error(std::size_t goal) const;
  /// Predicted error over target; at most 1 is decided.
  double need(std::size_t goal) const { return expected_error(goal) / goals_[goal].target; }
  bool all_decided() const;
  /// Whether all goals would be decided with these added, each that many times.
  bool decided_with(std::span<const Candidate* const> candidates,
                    std::span<const double> times) const;
  /// The same if all candidates were known without noise.
  GoalForecast without_noise(const std::vector<Candidate>& candidates) const;

 private:
  GoalForecast(const SurfacePosterior& posterior, std::vector<Candidate>& candidates,
               const std::vector<GoalState>& states, const std::vector<std::size_t>& misfits,
               double least_shape);
  /// The goals that are followed under one form of the law.
  struct FormForecast {
    LawForm form = LawForm::free;
    std::vector<SurfaceScales> scales;  // of each surface in the mixture
    LinearisedMixture mixture;
  };
  struct Followed {
    std::size_t form = 0;  // place in forms_
    Eigen::Index row = 0;
    double times = 1;  // the posterior's error over the mixture's
    double target = 0;
    bool decided = false;
  };
  void place_candidates(const SurfaceData& data, std::vector<Candidate>& candidates);
  void follow(const SurfacePosterior& posterior, LawForm form,
              const std::vector<std::size_t>& misfits, double least_shape,
              const std::vector<GoalState>& states);
  LinearisedSurface linearise(const SurfacePosterior& posterior, LawForm form, std::size_t misfit,
                              const SurfaceScales& scales,
                              const std::vector<const DesignGoal*>& goals) const;
  std::size_t site(std::int64_t layers, std::int64_t width, const SurfacePlace& place);
  Eigen::MatrixXd noise(const Candidate& candidate, const SurfaceScales& scales) const;
  /// Without `times`: each once.
  Observation observation(const FormForecast& form, std::span<const Candidate* const> candidates,
                          std::span<const double> times = {}) const;

  std::vector<SurfaceSite> sites_;
  std::vector<std::vector<std::size_t>> seen_;  // sites of the rows of each shape run so far
  SurfaceColumns::Range range_;
  std::vector<FormForecast> forms_;
  std::vector<Followed> goals_;
  std::vector<std::int64_t> depths_;
  double centre_ = 0;  // of the sizes that noise is counted from
  bool lengths_differ_ = false;
};

}  // namespace fathom::fits
