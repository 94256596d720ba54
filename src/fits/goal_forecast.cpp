#include "fits/goal_forecast.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fathom::fits {
namespace {

// A size of misfit with less posterior weight than this is left out of a plan.
constexpr double kSlight = 0.01;
// The least shape deviation that a plan assumes, relative to the noise.
constexpr double kLeastShape = 0.3;
// The posterior share below the smallest misfit that counts as possible.
constexpr double kHopeful = 0.1;
// An error this far below the target still counts as a gain: predictions are not met exactly.
constexpr double kMargin = 1.01;
// Error over target where there is no estimate yet.
constexpr double kUnseenNeed = 2;

/// Of these, those with a weight worth following.
std::vector<std::size_t> possible_misfits(const FormPosterior& form,
                                          const std::vector<std::size_t>& misfits) {
  std::vector<std::size_t> possible;
  for (const std::size_t k : misfits) {
    if (form.modes[k].weight >= kSlight) possible.push_back(k);
  }
  return possible.empty() ? misfits : possible;
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

GoalForecast GoalForecast::cautious(const SurfacePosterior& posterior,
                                    std::vector<Candidate>& candidates,
                                    const std::vector<GoalState>& states) {
  std::vector<std::size_t> all(posterior.misfits().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return {posterior, candidates, states, all, kLeastShape};
}

GoalForecast GoalForecast::hopeful(const SurfacePosterior& posterior,
                                   std::vector<Candidate>& candidates,
                                   const std::vector<GoalState>& states) {
  return {posterior, candidates, states, {least_misfit_left(posterior)}, 0};
}

GoalForecast::GoalForecast(const SurfacePosterior& posterior, std::vector<Candidate>& candidates,
                           const std::vector<GoalState>& states,
                           const std::vector<std::size_t>& misfits, double least_shape) {
  const SurfaceData& data = posterior.data();
  depths_ = data.depths;
  centre_ = data.centre();
  lengths_differ_ = data.length_rule.differs;
  range_ = {data.log_size, data.log_depth, data.length, lengths_differ_ ? 2 : 1};
  place_candidates(data, candidates);
  goals_.resize(states.size());
  for (const LawForm form : {LawForm::exponential, LawForm::free}) {
    follow(posterior, form, misfits, least_shape, states);
  }
  for (std::size_t g = 0; g < states.size(); ++g) {
    const double now = expected_error(g);
    const bool measured = states[g].goal.kind != GoalKind::form && std::isfinite(states[g].error);
    if (measured && now > 0) goals_[g].times = states[g].error / now;
    // A goal without an estimate is far from decided, whatever the linearised surface says.
    const bool unseen = !std::isfinite(states[g].error) && need(g) < kUnseenNeed;
    if (unseen && now > 0) goals_[g].times = kUnseenNeed * goals_[g].target / now;
  }
}

std::size_t GoalForecast::site(std::int64_t layers, std::int64_t width, const SurfacePlace& place) {
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

void GoalForecast::place_candidates(const SurfaceData& data, std::vector<Candidate>& candidates) {
  for (const ShapeBlock& block : data.shapes) {
    seen_.emplace_back();
    for (Eigen::Index i = block.first; i < block.first + block.rows; ++i) {
      const SurfacePlace& place = data.rows[static_cast<std::size_t>(i)].place;
      seen_.back().push_back(site(block.layers, block.width, place));
    }
  }
  for (Candidate& candidate : candidates) {
    // Count parameters as the runs do: with norms and biases if they include them.
    const double x = std::log(candidate.shape.params * data.block_coefficient / 12);
    const double u = std::log(static_cast<double>(candidate.shape.layers));
    candidate.sites.clear();
    for (const double tokens : candidate.lengths) {
      candidate.sites.push_back(site(candidate.shape.layers, candidate.shape.width,
                                     {x, u, data.length_rule.of(x, tokens)}));
    }
  }
}

void GoalForecast::follow(const SurfacePosterior& posterior, LawForm form,
                          const std::vector<std::size_t>& misfits, double least_shape,
                          const std::vector<GoalState>& states) {
  const FormPosterior& fitted = posterior.form(form);
  std::vector<const DesignGoal*> goals;
  for (std::size_t g = 0; g < states.size(); ++g) {
    if (goal_form(states[g].goal) != form) continue;
    goals_[g] = {forms_.size(), static_cast<Eigen::Index>(goals.size()), 1,
                 target_error(fitted.best().parameters, states[g].goal), states[g].decided};
    goals.push_back(&states[g].goal);
  }
  if (goals.empty()) return;
  std::vector<SurfaceScales> scales;
  std::vector<LinearisedSurface> linearised;
  std::vector<double> weights;
  double sum = 0;
  for (const std::size_t k : possible_misfits(fitted, misfits)) {
    scales.push_back(posterior.misfits()[k].scales);
    scales.back().log_shape = std::max(scales.back().log_shape, std::log(least_shape));
    linearised.push_back(linearise(posterior, form, k, scales.back(), goals));
    weights.push_back(std::max(fitted.modes[k].weight, 1e-300));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  forms_.push_back({form, std::move(scales), {std::move(linearised), weights}});
}

LinearisedSurface GoalForecast::linearise(const SurfacePosterior& posterior, LawForm form,
                                          std::size_t misfit, const SurfaceScales& scales,
                                          const std::vector<const DesignGoal*>& goals) const {
  const SurfaceColumns columns(range_);
  const DepthSurface& surface = posterior.form(form).surface;
  const Eigen::VectorXd& parameters = posterior.form(form).modes[misfit].parameters;
  Eigen::MatrixXd rows(static_cast<Eigen::Index>(goals.size()), surface.size() + columns.size());
  for (std::size_t r = 0; r < goals.size(); ++r) {
    rows.row(static_cast<Eigen::Index>(r)) =
        goal_row(columns, surface, parameters, posterior.data().block_coefficient, *goals[r]);
  }
  LinearisedSurface linear(columns, scales, surface, parameters, posterior.prior(surface), rows,
                           sites_);
  // A shape's own deviation belongs to its sites, not to the noise.
  SurfaceScales noise_only = scales;
  noise_only.log_shape = -1e3;
  const std::vector<ShapeBlock>& shapes = posterior.data().shapes;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    linear.observe(seen_[s], posterior.likelihood().block_covariance(shapes[s], noise_only));
  }
  return linear;
}

Eigen::MatrixXd GoalForecast::noise(const Candidate& candidate, const SurfaceScales& scales) const {
  // Noise correlation between the lengths of a trajectory before any were observed.
  constexpr double kShared = 0.5;
  const auto found = std::find(depths_.begin(), depths_.end(), candidate.shape.layers);
  const double times =
      found == depths_.end() ? 1 : std::exp(scales.log_depths[found - depths_.begin()]);
  const auto count = static_cast<Eigen::Index>(candidate.sites.size());
  Eigen::VectorXd deviations(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const SurfacePlace& place = sites_[candidate.sites[static_cast<std::size_t>(i)]].place;
    deviations[i] = times * scales.ordinary_noise(place.x - centre_, place.z);
  }
  const double shared = lengths_differ_ ? scales.length_correlation() : kShared;
  Eigen::MatrixXd covariance = shared * deviations * deviations.transpose();
  covariance.diagonal() = deviations.cwiseAbs2();
  return covariance;
}

Observation GoalForecast::observation(const FormForecast& form,
                                      std::span<const Candidate* const> candidates,
                                      std::span<const double> times) const {
  Observation seen;
  for (const Candidate* candidate : candidates) {
    seen.sites.insert(seen.sites.end(), candidate->sites.begin(), candidate->sites.end());
  }
  const auto count = static_cast<Eigen::Index>(seen.sites.size());
  for (const SurfaceScales& scales : form.scales) {
    Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(count, count);
    Eigen::Index place = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Eigen::MatrixXd own = noise(*candidates[i], scales);
      covariance.block(place, place, own.rows(), own.cols()) = own / (times.empty() ? 1 : times[i]);
      place += own.rows();
    }
    seen.noises.push_back(std::move(covariance));
  }
  return seen;
}

double GoalForecast::gain(std::span<const Candidate* const> candidates) const {
  double sum = 0;
  for (std::size_t p = 0; p < forms_.size(); ++p) {
    std::vector<const Followed*> open;
    std::vector<Eigen::Index> rows;
    for (std::size_t g = 0; g < goals_.size(); ++g) {
      if (goals_[g].form != p || goals_[g].decided || need(g) <= 1) continue;
      open.push_back(&goals_[g]);
      rows.push_back(goals_[g].row);
    }
    if (open.empty()) continue;
    const LinearisedMixture& mixture = forms_[p].mixture;
    const std::vector<double> after =
        mixture.expected_errors(rows, observation(forms_[p], candidates));
    for (std::size_t i = 0; i < open.size(); ++i) {
      const double now = mixture.error(rows[i]);
      const double needed = open[i]->times * now / open[i]->target;
      // Going beyond the target gains nothing; otherwise a design would end with its most
      // expensive runs.
      sum += 2 * std::log(std::min(now / after[i], kMargin * needed));
    }
  }
  return sum;
}

void GoalForecast::add(const Candidate& candidate, double times) {
  const Candidate* one[]{&candidate};
  const double each[]{times};
  for (FormForecast& form : forms_) form.mixture.observe(observation(form, one, each));
}

bool GoalForecast::decided_with(std::span<const Candidate* const> candidates,
                                std::span<const double> times) const {
  for (const Followed& goal : goals_) {
    if (goal.decided) continue;
    const FormForecast& form = forms_[goal.form];
    const Eigen::Index row[]{goal.row};
    const double error =
        form.mixture.expected_errors(row, observation(form, candidates, times)).front();
    if (goal.times * error > goal.target) return false;
  }
  return true;
}

double GoalForecast::expected_error(std::size_t goal) const {
  const Followed& followed = goals_[goal];
  return followed.times * forms_[followed.form].mixture.error(followed.row);
}

bool GoalForecast::all_decided() const {
  for (std::size_t g = 0; g < goals_.size(); ++g) {
    if (!goals_[g].decided && need(g) > 1) return false;
  }
  return true;
}

GoalForecast GoalForecast::without_noise(const std::vector<Candidate>& candidates) const {
  GoalForecast best = *this;
  for (const Candidate& candidate : candidates) {
    best.add(candidate, 1e4);
  }
  return best;
}

}  // namespace fathom::fits
