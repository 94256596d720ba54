#include "fits/design_picture.h"

#include <algorithm>
#include <cmath>

namespace fathom::fits {
namespace {

// Misfit and shapes' own departures that a plan reckons with at least, of the noise.
constexpr double kLeastMisfit = 0.9;
constexpr double kLeastShape = 0.3;
// The share of the posterior below the least misfit left possible.
constexpr double kHopeful = 0.1;
// An error this much below the wanted one still counts: what is foreseen is not met exactly.
constexpr double kMargin = 1.01;
// Error over the wanted one where there is no estimate yet.
constexpr double kUnseenNeed = 2;

double misfit_of(const SurfacePosterior& posterior, std::size_t k) {
  return std::exp(posterior.misfits()[k].scales.log_misfit);
}

/// The place nearest to the posterior's mean.
std::size_t mean_misfit(const SurfacePosterior& posterior) {
  const std::vector<SurfaceMode>& modes = posterior.form(LawForm::free).modes;
  double mean = 0;
  for (std::size_t k = 0; k < modes.size(); ++k) mean += modes[k].weight * misfit_of(posterior, k);
  std::size_t best = 0;
  for (std::size_t k = 0; k < modes.size(); ++k) {
    const auto off = [&](std::size_t i) { return std::fabs(misfit_of(posterior, i) - mean); };
    if (off(k) < off(best)) best = k;
  }
  return best;
}

std::size_t least_misfit_left(const SurfacePosterior& posterior) {
  const std::vector<SurfaceMode>& modes = posterior.form(LawForm::free).modes;
  double below = 0;
  for (std::size_t k = 0; k < modes.size(); ++k) {
    below += modes[k].weight;
    if (below >= kHopeful) return k;
  }
  return modes.size() - 1;
}

void widen(Interval& range, double value) {
  range.low = std::min(range.low, value);
  range.high = std::max(range.high, value);
}

}  // namespace

DesignPicture DesignPicture::cautious(const SurfacePosterior& posterior,
                                      std::vector<Candidate>& candidates,
                                      const std::vector<GoalState>& states) {
  return {posterior, candidates, states, mean_misfit(posterior), kLeastMisfit, kLeastShape};
}

DesignPicture DesignPicture::hopeful(const SurfacePosterior& posterior,
                                     std::vector<Candidate>& candidates,
                                     const std::vector<GoalState>& states) {
  return {posterior, candidates, states, least_misfit_left(posterior), 0, 0};
}

DesignPicture::DesignPicture(const SurfacePosterior& posterior, std::vector<Candidate>& candidates,
                             const std::vector<GoalState>& states, std::size_t misfit,
                             double least_misfit, double least_shape) {
  const SurfaceData& data = posterior.data();
  scales_ = posterior.misfits()[misfit].scales;
  scales_.log_misfit = std::max(scales_.log_misfit, std::log(least_misfit));
  scales_.log_shape = std::max(scales_.log_shape, std::log(least_shape));
  depths_ = data.depths;
  centre_ = data.centre();
  lengths_differ_ = data.length_rule.differs;
  range_ = {data.log_size, data.log_depth, data.length, lengths_differ_ ? 2 : 1};
  place_candidates(data, candidates);
  goals_.resize(states.size());
  for (const LawForm form : {LawForm::exponential, LawForm::free}) {
    follow(posterior, form, misfit, states);
  }
  for (std::size_t g = 0; g < states.size(); ++g) {
    const double now = expected_error(g);
    const bool measured = states[g].goal.kind != GoalKind::form && std::isfinite(states[g].error);
    if (measured && now > 0) goals_[g].times = states[g].error / now;
    // A goal without an estimate is far from decided, whatever the linear picture says of it.
    const bool unseen = !std::isfinite(states[g].error) && need(g) < kUnseenNeed;
    if (unseen && now > 0) goals_[g].times = kUnseenNeed * goals_[g].wanted / now;
  }
}

std::size_t DesignPicture::site(std::int64_t layers, std::int64_t width,
                                const SurfacePlace& place) {
  constexpr double kSameLength = 0.02;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (sites_[i].layers == layers && sites_[i].width == width &&
        std::fabs(sites_[i].place.z - place.z) < kSameLength) {
      return i;
    }
  }
  sites_.push_back({layers, width, place});
  widen(range_.log_size, place.x);
  widen(range_.log_depth, place.u);
  widen(range_.length, place.z);
  return sites_.size() - 1;
}

void DesignPicture::place_candidates(const SurfaceData& data, std::vector<Candidate>& candidates) {
  for (const ShapeBlock& block : data.shapes) {
    seen_.emplace_back();
    for (Eigen::Index i = block.first; i < block.first + block.rows; ++i) {
      const SurfacePlace& place = data.rows[static_cast<std::size_t>(i)].place;
      seen_.back().push_back(site(block.layers, block.width, place));
    }
  }
  for (Candidate& candidate : candidates) {
    // The runs' own count of parameters: norms and biases included where theirs is.
    const double x = std::log(candidate.shape.params * data.block_coefficient / 12);
    const double u = std::log(static_cast<double>(candidate.shape.layers));
    candidate.sites.clear();
    for (const double tokens : candidate.lengths) {
      candidate.sites.push_back(site(candidate.shape.layers, candidate.shape.width,
                                     {x, u, data.length_rule.of(x, tokens)}));
    }
  }
}

void DesignPicture::follow(const SurfacePosterior& posterior, LawForm form, std::size_t misfit,
                           const std::vector<GoalState>& states) {
  const SurfaceColumns columns(range_);
  const FormPosterior& fitted = posterior.form(form);
  const Eigen::VectorXd& parameters = fitted.modes[misfit].parameters;
  std::vector<Eigen::RowVectorXd> rows;
  for (std::size_t g = 0; g < states.size(); ++g) {
    const DesignGoal& goal = states[g].goal;
    if (goal_form(goal) != form) continue;
    goals_[g] = {pictures_.size(), static_cast<Eigen::Index>(rows.size()), 1,
                 wanted_error(parameters, goal), states[g].decided};
    rows.push_back(
        goal_row(columns, fitted.surface, parameters, posterior.data().block_coefficient, goal));
  }
  if (rows.empty()) return;
  Eigen::MatrixXd goals(static_cast<Eigen::Index>(rows.size()), rows.front().size());
  for (std::size_t r = 0; r < rows.size(); ++r) goals.row(static_cast<Eigen::Index>(r)) = rows[r];
  DesignState picture(columns, scales_, fitted.surface, parameters, posterior.prior(fitted.surface),
                      goals, sites_);
  // A shape's own departure belongs to its sites, not to the noise.
  SurfaceScales noise_only = scales_;
  noise_only.log_shape = -1e3;
  const std::vector<ShapeBlock>& shapes = posterior.data().shapes;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    picture.observe(seen_[s], posterior.likelihood().block_covariance(shapes[s], noise_only));
  }
  pictures_.push_back(std::move(picture));
}

Eigen::MatrixXd DesignPicture::noise(const Candidate& candidate) const {
  // What lengths of one trajectory share before any were seen.
  constexpr double kShared = 0.5;
  const auto found = std::find(depths_.begin(), depths_.end(), candidate.shape.layers);
  const double times =
      found == depths_.end() ? 1 : std::exp(scales_.log_depths[found - depths_.begin()]);
  const auto count = static_cast<Eigen::Index>(candidate.sites.size());
  Eigen::VectorXd deviations(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const SurfacePlace& place = sites_[candidate.sites[static_cast<std::size_t>(i)]].place;
    deviations[i] = times * scales_.ordinary_noise(place.x - centre_, place.z);
  }
  const double shared = lengths_differ_ ? scales_.length_correlation() : kShared;
  Eigen::MatrixXd covariance = shared * deviations * deviations.transpose();
  covariance.diagonal() = deviations.cwiseAbs2();
  return covariance;
}

double DesignPicture::gain(std::span<const Candidate* const> candidates) const {
  std::vector<std::size_t> sites;
  for (const Candidate* candidate : candidates) {
    sites.insert(sites.end(), candidate->sites.begin(), candidate->sites.end());
  }
  const auto count = static_cast<Eigen::Index>(sites.size());
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(count, count);
  Eigen::Index place = 0;
  for (const Candidate* candidate : candidates) {
    const Eigen::MatrixXd own = noise(*candidate);
    covariance.block(place, place, own.rows(), own.cols()) = own;
    place += own.rows();
  }
  double sum = 0;
  for (std::size_t g = 0; g < goals_.size(); ++g) {
    const Followed& goal = goals_[g];
    if (goal.decided || need(g) <= 1) continue;
    const DesignState& picture = pictures_[goal.picture];
    const double after = picture.expected_variance(goal.row, sites, covariance);
    const double drop = std::log(picture.goal_variance(goal.row) / std::max(after, 1e-300));
    // What goes beyond the wanted error gains nothing, or a design would end with its dearest runs.
    sum += std::min(drop, 2 * std::log(kMargin * need(g)));
  }
  return sum;
}

void DesignPicture::add(const Candidate& candidate) {
  const Eigen::MatrixXd covariance = noise(candidate);
  for (DesignState& picture : pictures_) picture.observe(candidate.sites, covariance);
}

double DesignPicture::expected_error(std::size_t goal) const {
  const Followed& followed = goals_[goal];
  const double variance = pictures_[followed.picture].goal_variance(followed.row);
  return followed.times * std::sqrt(std::max(0.0, variance));
}

bool DesignPicture::all_decided() const {
  for (std::size_t g = 0; g < goals_.size(); ++g) {
    if (!goals_[g].decided && need(g) > 1) return false;
  }
  return true;
}

DesignPicture DesignPicture::without_noise(const std::vector<Candidate>& candidates) const {
  DesignPicture best = *this;
  for (const Candidate& candidate : candidates) {
    const Eigen::MatrixXd covariance = 1e-4 * noise(candidate);
    for (DesignState& picture : best.pictures_) picture.observe(candidate.sites, covariance);
  }
  return best;
}

}  // namespace fathom::fits
