// All goals of a design in their linear pictures (design_mixture.h), and how trajectories would
// change them.
#pragma once

#include <span>
#include <vector>

#include "fits/design_candidates.h"
#include "fits/design_goals.h"
#include "fits/design_mixture.h"
#include "fits/surface_posterior.h"

namespace fathom::fits {

/// A trajectory that may be asked for: a shape trained to some lengths.
struct Candidate {
  CandidateShape shape;
  std::vector<double> lengths;
  double cost = 0;
  std::vector<std::size_t> sites;  // set by the picture
};

class DesignPicture {
 public:
  /// For planning: with every size of misfit that the runs leave possible.
  static DesignPicture cautious(const SurfacePosterior& posterior,
                                std::vector<Candidate>& candidates,
                                const std::vector<GoalState>& states);
  /// For what no number of runs could do: with the least misfit the runs leave possible.
  static DesignPicture hopeful(const SurfacePosterior& posterior,
                               std::vector<Candidate>& candidates,
                               const std::vector<GoalState>& states);

  /// Drop in twice the ln error that these trajectories together bring, summed over the undecided
  /// goals, each as far as the wanted error.
  double gain(std::span<const Candidate* const> candidates) const;
  /// `times` seeds of it.
  void add(const Candidate& candidate, double times = 1);
  /// The error foreseen: the posterior's, as far as the picture has changed since.
  double expected_error(std::size_t goal) const;
  /// Over the wanted one; at most 1 is decided.
  double need(std::size_t goal) const { return expected_error(goal) / goals_[goal].wanted; }
  bool all_decided() const;
  /// Whether all would be if these were added, each so many times.
  bool decided_with(std::span<const Candidate* const> candidates,
                    std::span<const double> times) const;
  /// The same if all candidates were known without noise.
  DesignPicture without_noise(const std::vector<Candidate>& candidates) const;

 private:
  DesignPicture(const SurfacePosterior& posterior, std::vector<Candidate>& candidates,
                const std::vector<GoalState>& states, const std::vector<std::size_t>& misfits,
                double least_shape);
  /// Goals that are followed in one form of the law.
  struct FormPicture {
    LawForm form = LawForm::free;
    std::vector<SurfaceScales> scales;  // of each of the mixture's pictures
    DesignMixture mixture;
  };
  struct Followed {
    std::size_t picture = 0;  // place in pictures_
    Eigen::Index row = 0;
    double times = 1;  // the posterior's error over the picture's
    double wanted = 0;
    bool decided = false;
  };
  void place_candidates(const SurfaceData& data, std::vector<Candidate>& candidates);
  void follow(const SurfacePosterior& posterior, LawForm form,
              const std::vector<std::size_t>& misfits, double least_shape,
              const std::vector<GoalState>& states);
  DesignState picture_of(const SurfacePosterior& posterior, LawForm form, std::size_t misfit,
                         const SurfaceScales& scales,
                         const std::vector<const DesignGoal*>& goals) const;
  std::size_t site(std::int64_t layers, std::int64_t width, const SurfacePlace& place);
  Eigen::MatrixXd noise(const Candidate& candidate, const SurfaceScales& scales) const;
  /// Without `times` each once.
  Sighting sighting(const FormPicture& picture, std::span<const Candidate* const> candidates,
                    std::span<const double> times = {}) const;

  std::vector<DesignSite> sites_;
  std::vector<std::vector<std::size_t>> seen_;  // sites of the rows of each shape run so far
  SurfaceColumns::Range range_;
  std::vector<FormPicture> pictures_;
  std::vector<Followed> goals_;
  std::vector<std::int64_t> depths_;
  double centre_ = 0;  // of the sizes that noise is counted from
  bool lengths_differ_ = false;
};

}  // namespace fathom::fits
