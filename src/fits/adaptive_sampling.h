// Weighted draws from a density with several modes of the same shape: adaptive importance sampling.
//
// Each mode (here one for every size of misfit) has a point, an information matrix, a share and a
// crest. In units of its own spread, straightened along its crest, all modes look alike, so draws
// are made there: in the first round Student about zero, later also with the spread of the draws so
// far and from small kernels about some of them. All rounds count: a draw is weighted by the mean
// of all rounds' proposals, whichever made it (adaptive multiple importance sampling, arXiv
// 0907.1254). Rounds end when the effective sample size suffices,
// after twelve at most.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <vector>

#include "fits/crest.h"

namespace fathom::fits {

struct SampledMode {
  Eigen::VectorXd point;
  Eigen::MatrixXd information;
  double share = 0;  // of the whole density, in the normal approximation
  Crest crest;
};
/// Modes with less are not drawn from.
inline constexpr double kLeastModeShare = 1e-3;

struct WeightedDraw {
  std::size_t mode = 0;
  Eigen::VectorXd point;
  double weight = 0;  // all sum to one
};

struct WeightedDraws {
  std::vector<WeightedDraw> draws;
  /// ln of the integral over that of the normal approximation.
  double log_correction = 0;
  double effective = 0;  // effective sample size
};

/// `log_density(mode, point)`: relative to the mode's own point, where it is 0. `draws`: in a
/// round.
WeightedDraws sample_modes(
    const std::vector<SampledMode>& modes,
    const std::function<double(std::size_t mode, const Eigen::VectorXd& point)>& log_density,
    std::size_t draws, std::uint64_t seed, std::uint64_t stream);

}  // namespace fathom::fits
