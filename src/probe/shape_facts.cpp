#include "probe/shape_facts.h"

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "laws/gemstones.h"
#include "planner/shape_report.h"
#include "shape/memory.h"

namespace fathom::probe {
namespace {

/// A quarter of the layers, at least one: what people cut first.
std::int64_t quarter(std::int64_t depth) {
  return std::max<std::int64_t>(1, depth / 4);
}

/// A law is trusted no further than a factor of ten beyond its data.
const double kFarthest = std::log(10.0);

/// The law's loss with n layers fewer at equal width and tokens, minus that of the model as it is.
std::optional<TrainedPrice> trained_price(const Shape& shape, const Shape& cut) {
  const laws::LawPointer law = laws::published_law(laws::GemstonesLaw::kName);
  const ParameterCount now = count_parameters(shape), fewer = count_parameters(cut);
  const double tokens = laws::kTokensPerParameter * as_double(now.non_embedding());
  const auto loss = [&](const Shape& s, const ParameterCount& count) {
    return law->loss(as_double(s.layers), as_double(s.width), as_double(count.paper_12Ld2), tokens);
  };
  const laws::Place place{as_double(fewer.paper_12Ld2), tokens, as_double(cut.layers)};
  const auto before = loss(shape, now), after = loss(cut, fewer);
  if (!before || !after || laws::distance_outside(law->info(), place) > kFarthest) {
    return std::nullopt;
  }
  return TrainedPrice{*after - *before, name_of(law->loss_evidence(place))};
}

}  // namespace

Shape shape_of(const pretrained::Layout& layout) {
  Shape shape;
  shape.layers = layout.depth();
  shape.width = layout.width;
  shape.heads = layout.heads;
  shape.kv_heads = layout.key_heads;
  shape.head_size = layout.head_size;
  shape.ffn = layout.ffn;
  shape.ffn_matrices = layout.gated ? 3 : 2;
  shape.vocab = layout.vocab;
  shape.context = layout.context;
  shape.tied = layout.tied;
  shape.conventions = find_conventions(layout.norm == pretrained::NormKind::rms ? "llama" : "gpt2");
  return shape;
}

ShapeFacts shape_facts(const pretrained::Layout& layout, const ProbeResult& result,
                       const std::string& hardware) {
  ShapeFacts facts;
  const Shape shape = shape_of(layout);
  const Hardware machine = find_hardware(hardware);
  facts.hardware = machine.title;
  facts.cut = quarter(shape.layers);
  if (shape.layers < 2 || !layout.causal) return facts;
  NamedShape subject;
  subject.name = result.model.name;
  subject.shape = shape;
  const planner::ShapeReport report = planner::report_shape(subject, machine, kDefaultStepTokens);
  if (report.consensus) {
    facts.law_layers = report.consensus->optimum.layers;
    facts.band = report.consensus->band;
    facts.evidence = name_of(report.consensus->evidence);
  }
  Shape cut = shape;
  cut.layers -= facts.cut;
  facts.trained_price = trained_price(shape, cut);
  const double cached = as_double(shape.context) / 2;
  facts.decode_saving = 1 - model_decode_time(cut, machine, cached).total() /
                                model_decode_time(shape, machine, cached).total();
  facts.cache_saving = 1 - kv_bytes_per_token(cut) / kv_bytes_per_token(shape);
  return facts;
}

}  // namespace fathom::probe
