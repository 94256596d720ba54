#include "cli/plan_report.h"
#include "cli/shape_json.h"

namespace fathom {
namespace {

using namespace planner;

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {interval->low, interval->high};
}

Json candidate_json(const Candidate& candidate) {
  Json json = shape_json(candidate.shape);
  json["params"] = whole_number(candidate.parameters);
  json["loss_penalty"] = candidate.penalty;
  json["step_seconds"] = candidate.step_seconds;
  json["train_seconds"] = candidate.train_seconds;
  json["decode_seconds_per_token"] = candidate.decode_seconds;
  json["tokens_to_equal_loss"] = number_or_null(candidate.tokens_to_equal_loss);
  json["seconds_to_equal_loss"] = number_or_null(candidate.seconds_to_equal_loss);
  return json;
}

Json law_json(const LawRow& row) {
  return {{"name", row.info.name},
          {"title", row.info.title},
          {"source", row.info.source},
          {"claim", row.info.claim},
          {"layers", row.optimum.layers},
          {"width", row.optimum.width},
          {"layers_interval", interval_json(row.optimum.layers_interval)},
          {"interval_meaning", row.info.interval_meaning},
          {"band", interval_json(row.band)},
          {"loss_penalty", row.penalty},
          {"vote", row.vote},
          {"outside", row.outside},
          {"evidence", to_string(row.evidence)}};
}

Json verdict_json(const Plan& plan) {
  const Verdict& verdict = plan.verdict;
  const auto edge = [](const std::optional<Candidate>& candidate) {
    return candidate ? candidate_json(*candidate) : Json(nullptr);
  };
  const Json practice =
      verdict.practice ? Json{verdict.practice->low, verdict.practice->high} : Json(nullptr);
  return {{"text", verdict.sentences},
          {"evidence", to_string(verdict.evidence)},
          {"reason", verdict.reason},
          {"equals", {verdict.equals.low, verdict.equals.high}},
          {"equals_clipped", {verdict.clipped_low, verdict.clipped_high}},
          {"equals_evidence", to_string(verdict.equals_evidence)},
          {"wider", edge(verdict.wider)},
          {"deeper", edge(verdict.deeper)},
          {"laws_disagree", verdict.laws_disagree},
          {"laws_range", {verdict.laws_range.low, verdict.laws_range.high}},
          {"practice_layers", practice},
          {"leaves_practice", verdict.leaves_practice}};
}

Json band_json(const Plan& plan) {
  const WholeDepths whole = whole_depths(plan.band);
  return {{"layers", {whole.low, whole.high}},
          {"edges", {plan.band.low, plan.band.high}},
          {"best_layers", plan.best_layers},
          {"tolerance", plan.request.tolerance},
          {"law", plan.loss_law.name}};
}

Json memory_json(const Plan& plan) {
  const DeviceMemory& memory = plan.device_memory;
  return {{"gpus", plan.sharding.gpus},
          {"tensor_parallel", plan.sharding.tensor},
          {"pipeline_parallel", plan.sharding.pipeline},
          {"zero", plan.sharding.zero},
          {"micro_batch", plan.sharding.micro_batch},
          {"recompute", plan.sharding.recompute},
          {"weights_bytes", memory.weights},
          {"gradients_bytes", memory.gradients},
          {"optimizer_bytes", memory.optimizer},
          {"gathered_bytes", memory.gathered},
          {"activations_bytes", memory.activations},
          {"logits_bytes", memory.logits},
          {"total_bytes", memory.total()},
          {"fits", fits_in_memory(memory, plan.hardware)}};
}

}  // namespace

void print_plan_json(Session& session, const Plan& plan) {
  Json document = json_document("plan");
  document["law"] = plan.law.name;
  document["refused_law"] = nullptr;
  if (plan.refused) {
    document["refused_law"] = {{"name", plan.refused->info.name},
                               {"reasons", plan.refused->reasons}};
  }
  document["objective"] = to_string(plan.request.objective);
  document["budget"] = {{"parameters", whole_number(plan.budget.parameters())},
                        {"flops", number_or_null(plan.request.flops)},
                        {"held_equal", plan.budget.description()},
                        {"tokens", whole_number(plan.tokens)},
                        {"tokens_default", !plan.request.tokens.has_value()}};
  document["recommendation"] = candidate_json(plan.recommendation);
  document["recommendation"]["parameters"] = parameters_json(plan.parameters);
  document["recommendation"]["train_flops"] = plan.train_flops;
  document["unrounded"] = {{"layers", plan.unrounded.layers},
                           {"width", plan.unrounded.width},
                           {"layers_interval", interval_json(plan.unrounded.layers_interval)},
                           {"evidence", to_string(plan.law_evidence)}};
  document["verdict"] = verdict_json(plan);
  document["regime"] = plan.regime ? Json(to_string(*plan.regime)) : Json(nullptr);
  document["transition_layers"] = plan.transition_layers;
  document["transition_width"] = plan.transition_width;
  document["theory_threshold_layers"] = plan.theory_threshold;
  document["band"] = band_json(plan);
  for (const LawRow& row : plan.laws) document["laws"].push_back(law_json(row));
  for (const ObjectiveRow& row : plan.objectives) {
    Json json{{"objective", to_string(row.objective)}, {"rule", row.rule}};
    json.update(candidate_json(row.candidate));
    document["objectives"].push_back(json);
  }
  document["memory"] = memory_json(plan);
  document["hardware"] = {{"name", plan.hardware.name},
                          {"title", plan.hardware.title},
                          {"source", plan.hardware.source},
                          {"times", "modelled"}};
  for (const PenaltyPoint& point : plan.curve) {
    document["curve"].push_back(
        {{"layers", point.layers}, {"width", point.width}, {"penalty", point.penalty}});
  }
  for (const CatalogueEntry* entry : plan.neighbours) {
    document["neighbours"].push_back(
        {{"name", entry->name},
         {"layers", entry->shape.layers},
         {"width", entry->shape.width},
         {"non_embedding", count_parameters(entry->shape).non_embedding()}});
  }
  for (const Statement& statement : plan.statements) {
    document["statements"].push_back(
        {{"evidence", to_string(statement.evidence)}, {"text", statement.text}});
  }
  document["warnings"] = plan.warnings;
  print_json(session, document);
}

}  // namespace fathom
