#include "planner/shape_report.h"

#include <algorithm>

#include "core/counts.h"
#include "laws/consensus.h"
#include "laws/gemstones.h"
#include "laws/levine.h"
#include "planner/planner.h"

namespace fathom::planner {
namespace {

constexpr std::size_t kNeighbours = 5;

/// The tokens a published model was trained on where they are known, else Chinchilla's rule.
double training_tokens(const NamedShape& subject, double parameters) {
  const bool known = subject.published != nullptr && subject.published->tokens > 0;
  return known ? subject.published->tokens : laws::kTokensPerParameter * parameters;
}

std::vector<LawPlace> places_of(const NamedShape& subject, const ParameterCount& parameters) {
  const Shape& shape = subject.shape;
  const double tokens = training_tokens(subject, as_double(parameters.non_embedding()));
  const laws::Budget budget = laws::Budget::non_embedding(as_double(parameters.paper_12Ld2));
  std::vector<LawPlace> places;
  for (const laws::LawPointer& law : laws::published_laws()) {
    const laws::Optimum optimum = law->optimum(budget);
    places.push_back({law->info(), optimum, as_double(shape.layers) - optimum.layers,
                      law->optimum_evidence(budget, tokens)});
  }
  return places;
}

ConsensusPlace consensus_place(const NamedShape& subject, const ParameterCount& parameters) {
  const double layers = as_double(subject.shape.layers);
  const double tokens = training_tokens(subject, as_double(parameters.non_embedding()));
  const laws::Budget budget = laws::Budget::non_embedding(as_double(parameters.paper_12Ld2));
  const laws::Consensus law(laws::measured_laws(), laws::published_law(laws::GemstonesLaw::kName),
                            budget, tokens);
  const laws::LossSurface surface(law, budget, tokens);
  const laws::Optimum best = law.optimum_after(budget, tokens);
  Interval band = surface.band(kDefaultTolerance);
  // No farther than what was trained, unless the laws themselves go further.
  band.high = std::min(band.high, std::max(law.info().layers.high, best.layers));
  return {best, surface.penalty(layers), band,
          law.loss_evidence({budget.parameters(), tokens, layers})};
}

std::vector<const CatalogueEntry*> neighbours_of(const NamedShape& subject,
                                                 const ParameterCount& parameters) {
  std::vector<const CatalogueEntry*> neighbours;
  for (const CatalogueEntry* entry :
       nearest_published(as_double(parameters.non_embedding()), as_double(subject.shape.layers),
                         kNeighbours + 1)) {
    if (entry != subject.published && neighbours.size() < kNeighbours) neighbours.push_back(entry);
  }
  return neighbours;
}

}  // namespace

bool ShapeReport::depth_pays() const {
  return as_double(subject.shape.width) >= transition_width;
}

bool ShapeReport::depth_sets_latency() const {
  return as_double(subject.shape.width) < latency_crossover_width;
}

ShapeReport report_shape(const NamedShape& subject, const Hardware& hardware,
                         std::int64_t step_tokens, std::int64_t batch) {
  const Shape& shape = subject.shape;
  const double tokens = as_double(step_tokens);
  ShapeReport report{
      .subject = subject,
      .parameters = count_parameters(shape),
      .flops = count_flops(shape),
      .memory = count_training_memory(shape, tokens),
      .kv_bytes_per_token = fathom::kv_bytes_per_token(shape),
      .batch = batch,
      .kv_bytes = fathom::kv_bytes_per_token(shape) * as_double(shape.context) * as_double(batch),
      .step = model_step_time(shape, hardware, step_tokens),
      .share_of_peak = 0,
      .decode = model_decode_time(shape, hardware, as_double(shape.context) / 2),
      .latency_crossover_width = fathom::latency_crossover_width(hardware),
      .hardware = hardware,
      .step_tokens = step_tokens,
      .transition_width = laws::LevineLaw().transition_width(as_double(shape.layers)),
      .places = {},
      .consensus = std::nullopt,
      .neighbours = {}};
  report.share_of_peak =
      report.flops.train_per_token * tokens / (report.step.total() * hardware.peak_flops);
  report.places = places_of(subject, report.parameters);
  if (!shape.mixture()) report.consensus = consensus_place(subject, report.parameters);
  report.neighbours = neighbours_of(subject, report.parameters);
  return report;
}

}  // namespace fathom::planner
