#include "fits/surface_draws.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "fits/statistics.h"

namespace fathom::fits {
namespace {

constexpr int kSizes = 80;   // scanned for a crossing
constexpr int kDepths = 64;  // scanned for the best depth

}  // namespace

void WeightedSample::sort() {
  std::sort(values.begin(), values.end());
}

double WeightedSample::quantile(double probability) const {
  double below = 0;
  for (const auto& [value, weight] : values) {
    below += weight;
    if (below >= probability) return value;
  }
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : values.back().first;
}

Bounds bounds_within(Interval interval, Interval range) {
  Bounds bounds;
  if (interval.low > -kInfinity) bounds.low = std::min(interval.low, range.high);
  if (interval.high < kInfinity) bounds.high = std::max(interval.high, range.low);
  return bounds;
}

SurfaceDraws::SurfaceDraws(const SurfacePosterior& posterior, std::size_t count, std::uint64_t seed)
    : posterior_(posterior) {
  const SurfaceLikelihood& likelihood = posterior.likelihood();
  const RandomStream random(seed, 2000);
  const Eigen::Index coefficients = likelihood.coefficients();
  const Eigen::Index misfits = likelihood.columns().misfits();
  // Systematic resampling: one uniform, then equal steps through the cumulated weights.
  const double step = 1 / static_cast<double>(count);
  double mark = step * random.uniform(0);
  double below = 0;
  std::uint64_t next = 1;
  for (const FormPosterior& form : posterior.forms()) {
    const double share = posterior.probability(form.surface.law().form());
    for (const WeightedDraw& draw : form.draws) {
      below += share * draw.weight;
      for (; mark < below; mark += step) {
        Draw drawn{&form, &draw, {}};
        if (draw.mode > 0) {
          const auto& prepared = posterior.misfits()[draw.mode];
          Eigen::MatrixXd residual =
              likelihood.means() - likelihood.penalties(form.surface, draw.point);
          likelihood.whiten(prepared, residual);
          Eigen::VectorXd values =
              prepared.normal.matrixL().solve(prepared.design.transpose() * residual);
          for (Eigen::Index j = 0; j < coefficients; ++j) values[j] += random.normal(next++);
          prepared.normal.matrixU().solveInPlace(values);
          drawn.misfit = prepared.scales.misfit_deviation() * values.tail(misfits);
        }
        draws_.push_back(std::move(drawn));
      }
    }
  }
  scan_sizes();
}

void SurfaceDraws::scan_sizes() {
  const SurfaceData& data = posterior_.data();
  const auto depths = static_cast<Eigen::Index>(data.depths.size());
  const double step = (data.log_size.high - data.log_size.low) / (kSizes - 1);
  Eigen::MatrixXd columns(kSizes * depths, posterior_.likelihood().columns().misfits());
  Eigen::ArrayXd log_depths(depths);
  for (Eigen::Index d = 0; d < depths; ++d) {
    log_depths[d] = std::log(static_cast<double>(data.depths[static_cast<std::size_t>(d)]));
    for (int i = 0; i < kSizes; ++i) {
      columns.row(d * kSizes + i) = posterior_.likelihood().columns().misfit(
          {data.log_size.low + step * i, log_depths[d], 0});
    }
  }
  for (const Draw& draw : draws_) {
    Eigen::MatrixXf losses(kSizes, depths);
    for (int i = 0; i < kSizes; ++i) {
      const auto section =
          draw.form->surface.section(draw.draw->point, data.log_size.low + step * i);
      losses.row(i) = section.at(log_depths).cast<float>();
    }
    if (draw.misfit.size() > 0) {
      losses.reshaped() += (columns * draw.misfit).cast<float>();
    }
    losses_.push_back(std::move(losses));
  }
}

std::vector<double> SurfaceDraws::best_log_depths(double log_size, Interval depths) const {
  const double step = (depths.high - depths.low) / (kDepths - 1);
  Eigen::MatrixXd columns(kDepths, posterior_.likelihood().columns().misfits());
  const Eigen::ArrayXd scanned = Eigen::ArrayXd::LinSpaced(kDepths, depths.low, depths.high);
  for (int i = 0; i < kDepths; ++i) {
    columns.row(i) = posterior_.likelihood().columns().misfit({log_size, scanned[i], 0});
  }
  std::vector<double> best;
  Eigen::VectorXd values(kDepths);
  for (const Draw& draw : draws_) {
    const auto section = draw.form->surface.section(draw.draw->point, log_size);
    if (draw.misfit.size() == 0) {
      const double u = section.best();
      best.push_back(u < depths.low ? -kInfinity : u > depths.high ? kInfinity : u);
      continue;
    }
    values.noalias() = columns * draw.misfit;
    values.array() += section.at(scanned);
    Eigen::Index least = 0;
    values.minCoeff(&least);
    if (least == 0 || least == kDepths - 1) {
      best.push_back(least == 0 ? -kInfinity : kInfinity);
      continue;
    }
    // The vertex of the parabola through three points.
    const double before = values[least - 1] - values[least];
    const double after = values[least + 1] - values[least];
    const double shift = before + after > 0 ? (before - after) / (2 * (before + after)) : 0;
    best.push_back(depths.low + step * (static_cast<double>(least) + shift));
  }
  return best;
}

std::vector<double> SurfaceDraws::crossings(std::size_t shallow, std::size_t deep) const {
  const Interval range = posterior_.data().log_size;
  const double step = (range.high - range.low) / (kSizes - 1);
  std::vector<double> found;
  for (const Eigen::MatrixXf& losses : losses_) {
    const Eigen::VectorXf gain = losses.col(static_cast<Eigen::Index>(shallow)) -
                                 losses.col(static_cast<Eigen::Index>(deep));
    int last = kSizes - 1;
    while (last >= 0 && gain[last] >= 0) --last;
    if (last < 0 || last == kSizes - 1) {
      found.push_back(last < 0 ? -kInfinity : kInfinity);
      continue;
    }
    const double part = gain[last] / (gain[last] - gain[last + 1]);
    found.push_back(range.low + step * (last + part));
  }
  return found;
}

}  // namespace fathom::fits
