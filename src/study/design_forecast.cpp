#include "study/design_forecast.h"

#include <cmath>

#include "core/counts.h"
#include "core/random.h"
#include "fits/depth_surface.h"
#include "laws/levine.h"

namespace fathom::study {
namespace {

constexpr double kNoise = 0.002;
constexpr std::size_t kMostRounds = 40;
// With an unlimited budget the simulation would never end. The last round may exceed this limit: a
// round costs a share of what was spent before it.
constexpr std::size_t kMostRuns = 400;

class NominalWorld {
 public:
  explicit NominalWorld(const std::vector<double>& sizes)
      : surface_(fits::LawForm::exponential, (std::log(sizes[0]) + std::log(sizes[1])) / 2, false) {
    const laws::LevineFit published;
    const double depth = laws::LevineLaw().depth_for(std::exp(surface_.law().centre()));
    parameters_ = surface_.prior(std::log(depth)).mean;
    parameters_[0] = std::log(depth);
    parameters_[1] = -std::log1p(2 * published.b * depth);
  }

  fits::RunPoint run(std::int64_t layers, std::int64_t width, std::uint64_t seed,
                     double tokens) const {
    const double params = GridShape{layers, width, 1}.nominal_size();
    const double x = std::log(params);
    const double level = std::log(1.9 + 11.5 * std::pow(params, -0.16));
    const double off =
        kNoise * RandomStream(seed, static_cast<std::uint64_t>(layers * 100000 + width)).normal(0);
    const double penalty = surface_.penalty(parameters_, {x, std::log(as_double(layers)), 0});
    return {"nominal", layers, width, params, tokens, std::exp(level + penalty + off), seed};
  }

 private:
  fits::DepthSurface surface_;
  Eigen::VectorXd parameters_;
};

}  // namespace

DesignForecast foretell_design(const StudySpec& spec, const fits::DesignSpec& design) {
  const NominalWorld world(spec.design->sizes);
  DesignForecast forecast;
  std::vector<fits::RunPoint> runs;
  forecast.rounds.push_back(first_round(spec, design));
  while (forecast.rounds.size() < kMostRounds) {
    for (const Trajectory& run : forecast.rounds.back().runs) {
      const auto lengths = design.lengths(run.shape.nominal_size());
      // One length is enough for the count: what further lengths add is not predicted.
      runs.push_back(world.run(run.shape.layers, run.shape.width, run.seed, lengths.back()));
    }
    forecast.end = fits::next_batch(runs, design);
    if (forecast.end.batch.empty() || runs.size() >= kMostRuns) break;
    forecast.rounds.push_back(round_of(spec, forecast.end));
  }
  return forecast;
}

}  // namespace fathom::study
