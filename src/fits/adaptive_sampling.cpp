#include "fits/adaptive_sampling.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/random.h"

namespace fathom::fits {
namespace {

constexpr double kDegrees = 6;                // of every Student proposal
constexpr double kWide = 1.25;                // the first proposal's spread, in units of the mode's
constexpr double kWhole = 1.1;                // later ones', in units of the weighted draws' spread
constexpr double kKernel = 0.6;               // of a kernel, in the same units
constexpr std::array kShares{0.2, 0.5, 0.3};  // of wide, whole and kernels in later rounds
constexpr std::size_t kKernels = 40;
constexpr int kLeastRounds = 3;
constexpr int kMostRounds = 12;
constexpr double kEnough = 0.8;  // effective sample size to stop at, over the draws of a round

/// A multivariate Student distribution about zero.
struct Student {
  Eigen::MatrixXd factor;  // lower triangular
  double peak = 0;         // density at zero

  explicit Student(Eigen::MatrixXd spread) : factor(std::move(spread)) {
    const auto dimension = static_cast<double>(factor.rows());
    peak = std::exp(std::lgamma((kDegrees + dimension) / 2) - std::lgamma(kDegrees / 2) -
                    dimension / 2 * std::log(kDegrees * std::numbers::pi) -
                    factor.diagonal().array().log().sum());
  }
  Eigen::VectorXd whitened(const Eigen::VectorXd& off) const {
    return factor.triangularView<Eigen::Lower>().solve(off);
  }
  double density(const Eigen::VectorXd& whitened) const {
    const auto dimension = static_cast<double>(whitened.size());
    return peak * std::pow(1 + whitened.squaredNorm() / kDegrees, -(kDegrees + dimension) / 2);
  }
};

/// The distribution units are drawn from: the wide proposal alone, or mixed with one about all
/// earlier draws and small kernels about some of them.
struct Proposal {
  Student wide;
  Student whole;
  Student kernel;
  Eigen::VectorXd centre;
  std::vector<Eigen::VectorXd> centres;
  std::vector<Eigen::VectorXd> whitened_centres;  // by the kernel

  double density(const Eigen::VectorXd& unit) const {
    const double near = wide.density(wide.whitened(unit));
    if (centres.empty()) return near;
    double sum = kShares[0] * near + kShares[1] * whole.density(whole.whitened(unit - centre));
    const Eigen::VectorXd place = kernel.whitened(unit);
    const double each = kShares[2] / static_cast<double>(centres.size());
    for (const Eigen::VectorXd& other : whitened_centres) {
      sum += each * kernel.density(place - other);
    }
    return sum;
  }
};

Proposal wide_proposal(Eigen::Index dimension) {
  const Student wide(kWide * Eigen::MatrixXd::Identity(dimension, dimension));
  return {wide, wide, wide, {}, {}, {}};
}

class Sampler {
 public:
  Sampler(const std::vector<SampledMode>& modes,
          const std::function<double(std::size_t, const Eigen::VectorXd&)>& log_density,
          RandomStream random)
      : modes_(modes), log_density_(log_density), random_(random) {
    for (const SampledMode& mode : modes) {
      spreads_.push_back(Eigen::MatrixXd::Identity(dimension(), dimension()));
      Eigen::LLT<Eigen::MatrixXd>(mode.information).matrixU().solveInPlace(spreads_.back());
    }
  }

  /// Makes a round of about `count` draws; returns all draws so far, weighted by the mixture of all
  /// proposals so far.
  WeightedDraws draw(std::size_t count) {
    proposals_.push_back(proposals_.empty() ? wide_proposal(dimension()) : adapted());
    for (Drawn& drawn : drawn_) drawn.proposed += proposals_.back().density(drawn.unit);
    for (std::size_t k = 0; k < modes_.size(); ++k) {
      if (modes_[k].share < kLeastModeShare) continue;
      const double wanted = std::ceil(modes_[k].share * static_cast<double>(count));
      for (double i = 0; i < wanted; ++i) draw_from(k, modes_[k].share / wanted);
    }
    weigh();
    return sample_;
  }

 private:
  /// A draw in units of its mode.
  struct Drawn {
    Eigen::VectorXd unit;
    double log_density = 0;
    double share = 0;     // of the mode, for one draw of a round
    double proposed = 0;  // density of all proposals, summed
  };

  Eigen::Index dimension() const { return modes_.front().point.size(); }

  void draw_from(std::size_t k, double share) {
    Drawn drawn{next_unit(proposals_.back()), 0, share, 0};
    Eigen::VectorXd off = spreads_[k] * drawn.unit;
    modes_[k].crest.bend(off);
    const Eigen::VectorXd point = modes_[k].point + off;
    drawn.log_density = log_density_(k, point);
    for (const Proposal& proposal : proposals_) drawn.proposed += proposal.density(drawn.unit);
    sample_.draws.push_back({k, point, 0});
    drawn_.push_back(std::move(drawn));
  }

  void weigh() {
    std::vector<double> log_weights;
    for (const Drawn& drawn : drawn_) {
      log_weights.push_back(drawn.log_density +
                            std::log(drawn.share / std::max(drawn.proposed, 1e-300)));
    }
    const double most = *std::max_element(log_weights.begin(), log_weights.end());
    double sum = 0;
    double squares = 0;
    for (const double w : log_weights) sum += std::exp(w - most);
    for (std::size_t i = 0; i < log_weights.size(); ++i) {
      const double weight = std::exp(log_weights[i] - most) / sum;
      sample_.draws[i].weight = weight;
      squares += weight * weight;
    }
    sample_.effective = 1 / squares;
    sample_.log_correction = most + std::log(sum) -
                             static_cast<double>(dimension()) / 2 * std::log(2 * std::numbers::pi);
  }

  /// With the spread of the draws so far, and kernels about some of them, resampled by weight.
  Proposal adapted() {
    Eigen::VectorXd centre = Eigen::VectorXd::Zero(dimension());
    Eigen::MatrixXd square = Eigen::MatrixXd::Zero(dimension(), dimension());
    for (std::size_t i = 0; i < drawn_.size(); ++i) {
      centre += sample_.draws[i].weight * drawn_[i].unit;
    }
    for (std::size_t i = 0; i < drawn_.size(); ++i) {
      const Eigen::VectorXd off = drawn_[i].unit - centre;
      square += sample_.draws[i].weight * off * off.transpose();
    }
    square.diagonal().array() += 0.1;  // so that few draws do not make it singular
    const Eigen::MatrixXd factor = square.llt().matrixL();
    Proposal proposal = wide_proposal(dimension());
    proposal.whole = Student(kWhole * factor);
    proposal.kernel = Student(kKernel * factor);
    proposal.centre = centre;
    const double step = 1.0 / static_cast<double>(kKernels);
    double mark = step * random_.uniform(2 * next_++);
    double below = 0;
    for (std::size_t i = 0; i < drawn_.size(); ++i) {
      below += sample_.draws[i].weight;
      for (; mark < below; mark += step) {
        proposal.centres.push_back(drawn_[i].unit);
        proposal.whitened_centres.push_back(proposal.kernel.whitened(drawn_[i].unit));
      }
    }
    return proposal;
  }

  Eigen::VectorXd next_unit(const Proposal& proposal) {
    Eigen::VectorXd normal(dimension());
    for (double& value : normal) value = random_.normal(next_++);
    double chi = 0;
    for (int j = 0; j < static_cast<int>(kDegrees); ++j) {
      chi += std::pow(random_.normal(next_++), 2);
    }
    normal *= std::sqrt(kDegrees / chi);
    const double which = random_.uniform(2 * next_++);
    if (proposal.centres.empty() || which < kShares[0]) return proposal.wide.factor * normal;
    if (which < kShares[0] + kShares[1]) return proposal.centre + proposal.whole.factor * normal;
    const double place = (which - kShares[0] - kShares[1]) / kShares[2];
    const auto j = static_cast<std::size_t>(place * static_cast<double>(proposal.centres.size()));
    return proposal.centres[std::min(j, proposal.centres.size() - 1)] +
           proposal.kernel.factor * normal;
  }

  const std::vector<SampledMode>& modes_;
  const std::function<double(std::size_t, const Eigen::VectorXd&)>& log_density_;
  std::vector<Eigen::MatrixXd> spreads_;
  RandomStream random_;
  std::uint64_t next_ = 0;
  std::vector<Proposal> proposals_;
  std::vector<Drawn> drawn_;
  WeightedDraws sample_;  // of all draws so far
};

}  // namespace

WeightedDraws sample_modes(
    const std::vector<SampledMode>& modes,
    const std::function<double(std::size_t mode, const Eigen::VectorXd& point)>& log_density,
    std::size_t draws, std::uint64_t seed, std::uint64_t stream) {
  Sampler sampler(modes, log_density, RandomStream(seed, stream));
  WeightedDraws sample;
  for (int round = 1; round <= kMostRounds; ++round) {
    sample = sampler.draw(draws);
    if (round >= kLeastRounds && sample.effective > kEnough * static_cast<double>(draws)) break;
  }
  return sample;
}

}  // namespace fathom::fits
