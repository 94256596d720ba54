#include "planner/plan_statements.h"

#include <fmt/format.h>

#include <cmath>

#include "core/counts.h"
#include "core/units.h"
#include "laws/levine.h"
#include "shape/timing.h"

namespace fathom::planner {
namespace {

std::string layers_text(double layers) {
  return format_significant(layers, 3);
}

Statement law_statement(const Plan& plan) {
  const laws::Optimum& best = plan.unrounded;
  std::string text = fmt::format("{} puts the optimum at {} layers × {}", plan.law.title,
                                 layers_text(best.layers), format_significant(best.width, 4));
  if (best.layers_interval) {
    text += fmt::format(" ({} to {} layers: {})", layers_text(best.layers_interval->low),
                        layers_text(best.layers_interval->high), plan.law.interval_meaning);
  }
  return {plan.law_evidence, text + "; " + plan.verdict.reason};
}

Statement band_statement(const Plan& plan) {
  const PenaltyPoint& shallow = plan.curve.front();
  const PenaltyPoint& deep = plan.curve.back();
  const WholeDepths& band = plan.verdict.equals;
  return {
      plan.loss_law_evidence,
      fmt::format("between {} and {} layers the loss stays within {:.2g} % of the best; "
                  "{:.0f} layers cost {}, {:.0f} cost {} ({}, {} tokens)",
                  band.low, band.high, 100 * plan.request.tolerance, shallow.layers,
                  format_percent(shallow.penalty, 1), deep.layers, format_percent(deep.penalty, 1),
                  plan.loss_law.title, format_count(plan.tokens))};
}

/// Where the shape is relative to Levine's transition; only inside that law's data.
Statement regime_statement(const Plan& plan) {
  const std::string place = fmt::format("the transition depth of this size is {} (Levine 2020)",
                                        layers_text(plan.transition_layers));
  if (!plan.regime) return {laws::Evidence::extrapolated, place};
  const double layers = as_double(plan.recommendation.shape.layers);
  const double off = std::fabs(plan.transition_layers - layers);
  return {laws::Evidence::fitted,
          *plan.regime == DepthRegime::transition
              ? fmt::format("on the edge of the depth-efficient regime: {}", place)
              : fmt::format("{}; this shape is {:.0f} layers {}", place, off,
                            *plan.regime == DepthRegime::efficient ? "shallower" : "deeper")};
}

Statement theory_statement(const Plan& plan) {
  const Shape& shape = plan.recommendation.shape;
  const bool efficient = as_double(shape.layers) < plan.theory_threshold;
  return {
      laws::Evidence::proved,
      fmt::format("the analysed network (no softmax, bidirectional) has its threshold at log3 {} "
                  "= {:.2f} layers; {} layers lie {}",
                  shape.width, plan.theory_threshold, shape.layers,
                  efficient ? "below it" : "above it")};
}

void add_vocabulary_warning(Plan& plan) {
  const Shape& shape = plan.recommendation.shape;
  if (shape.width <= shape.vocab) return;
  const double rank = as_double(shape.vocab);
  const double layers = plan.budget.parameters() / (plan.budget.block_coefficient() * rank * rank);
  plan.warnings.push_back(
      fmt::format("width {} exceeds the embedding rank {} (the vocabulary): the extra width adds "
                  "nothing to what the first layer can distinguish (arXiv 2105.03928). At width {} "
                  "the budget buys {} layers (extrapolated).",
                  shape.width, shape.vocab, shape.vocab, layers_text(layers)));
}

std::string sharding_text(const Sharding& s) {
  std::string text = fmt::format("{} GPU{}", format_whole(s.gpus), s.gpus == 1 ? "" : "s");
  if (s.tensor > 1) text += fmt::format(", tensor {}", s.tensor);
  if (s.pipeline > 1) text += fmt::format(", pipeline {}", s.pipeline);
  if (s.zero > 0) text += fmt::format(", ZeRO {}", s.zero);
  if (s.micro_batch > 1) text += fmt::format(", micro-batch {}", s.micro_batch);
  return s.recompute ? text + ", recomputation" : text;
}

/// Memory of a GPU by part, and what would fit if it does not.
std::string memory_text(const Plan& plan) {
  const DeviceMemory& m = plan.device_memory;
  const bool good = fits_in_memory(m, plan.hardware);
  const auto gigabytes = [](double bytes) { return format_significant(bytes / 1e9, 3); };
  std::string text = fmt::format(
      "{} {}: {} of {} GB each (weights {}, gradients {}, AdamW {}, activations {}, logits {})",
      good ? "fits" : "does not fit", sharding_text(plan.sharding), gigabytes(m.total()),
      gigabytes(plan.hardware.memory_bytes), gigabytes(m.weights + m.gathered),
      gigabytes(m.gradients), gigabytes(m.optimizer), gigabytes(m.activations),
      gigabytes(m.logits));
  if (good) return text;
  if (!plan.fitting) return text + "; even a million GPUs would not be enough";
  const DeviceMemory enough = count_device_memory(plan.recommendation.shape, *plan.fitting);
  return fmt::format("{}; {} would be enough: {} GB each", text, sharding_text(*plan.fitting),
                     gigabytes(enough.total()));
}

void add_padding_note(Plan& plan) {
  const std::int64_t padded = plan.recommendation.shape.vocab;
  if (padded == plan.request.base.vocab) return;
  plan.warnings.push_back(fmt::format(
      "the vocabulary is padded from {} to {}, a multiple of 64{}",
      format_whole(plan.request.base.vocab), format_whole(padded),
      plan.request.rules.tensor_parallel > 1
          ? fmt::format(" × {} tensor-parallel GPUs", plan.request.rules.tensor_parallel)
          : ""));
}

}  // namespace

void add_statements(Plan& plan) {
  plan.statements = {law_statement(plan), band_statement(plan), regime_statement(plan),
                     theory_statement(plan)};
  plan.memory = memory_text(plan);
  if (plan.unrounded.layers <= laws::kMinLayers * 1.001) {
    plan.warnings.push_back(
        fmt::format("the law asks for fewer than {:.0f} layers at this size; {:.0f} is the least "
                    "it is used for",
                    laws::kMinLayers, laws::kMinLayers));
  }
  const double off = plan.recommendation.parameters / plan.budget.parameters() - 1;
  if (std::fabs(off) > 0.03) {
    plan.warnings.push_back(
        fmt::format("rounding and constraints miss the budget by {}; relax them or change the size",
                    format_percent(off, 1)));
  }
  add_padding_note(plan);
  add_vocabulary_warning(plan);
}

}  // namespace fathom::planner
