#include "cli/shape_json.h"

namespace fathom {
namespace {

using planner::LawPlace;
using planner::ShapeReport;

Json step_json(const ShapeReport& r) {
  return {{"hardware", r.hardware.name},
          {"kind", "modelled"},
          {"step_tokens", r.step_tokens},
          {"step_seconds", r.step.total()},
          {"matmul_seconds", r.step.matmul},
          {"attention_seconds", r.step.attention},
          {"memory_seconds", r.step.memory_passes},
          {"optimizer_seconds", r.step.optimizer},
          {"fixed_seconds", r.step.fixed},
          {"tile_wave_efficiency", r.step.matmul_efficiency},
          {"decode_seconds_per_token", r.decode.total()}};
}

}  // namespace

Json shape_json(const Shape& shape) {
  Json json{{"layers", shape.layers},
            {"width", shape.width},
            {"heads", shape.heads},
            {"kv_heads", shape.kv_heads},
            {"head_size", shape.head_size},
            {"ffn", shape.ffn},
            {"ffn_matrices", shape.ffn_matrices},
            {"vocab", shape.vocab},
            {"context", shape.context},
            {"tied", shape.tied},
            {"conventions", shape.conventions.name},
            {"conventions_assumed", shape.conventions.assumed}};
  if (!shape.context_known) json["context"] = nullptr;
  if (shape.mixture()) {
    json["experts"] = {{"routed", shape.experts.routed},
                       {"active", shape.experts.active},
                       {"ffn", shape.experts.ffn},
                       {"shared_ffn", shape.experts.shared_ffn},
                       {"dense_layers", shape.experts.dense_layers}};
  }
  if (shape.latent_attention()) {
    json["latent_attention"] = {{"kv_rank", shape.latent.kv_rank},
                                {"q_rank", shape.latent.q_rank},
                                {"rope_size", shape.latent.rope_size},
                                {"value_size", shape.latent.value_size}};
  }
  return json;
}

Json parameters_json(const ParameterCount& count) {
  return {{"total", count.total()},
          {"active", count.active()},
          {"non_embedding", count.non_embedding()},
          {"paper_12ld2", count.paper_12Ld2},
          {"embedding", count.embedding},
          {"positions", count.positions},
          {"attention_matrices", count.attention_matrices},
          {"ffn_matrices", count.ffn_matrices},
          {"router", count.router},
          {"head", count.head},
          {"norms", count.norms},
          {"biases", count.biases}};
}

Json shape_report_json(const ShapeReport& r) {
  Json document;
  document["name"] = r.subject.name;
  document["note"] = r.subject.note.empty() ? Json(nullptr) : Json(r.subject.note);
  document["shape"] = shape_json(r.subject.shape);
  document["parameters"] = parameters_json(r.parameters);
  document["flops"] = {{"train_per_token", r.flops.train_per_token},
                       {"train_recompute_per_token", r.flops.train_recompute_per_token},
                       {"forward_per_token", r.flops.forward_per_token},
                       {"attention_share", r.flops.attention_share},
                       {"six_n_per_token", r.flops.six_n_per_token}};
  document["memory"] = {{"tokens", r.step_tokens},
                        {"weights_bytes", r.memory.weights},
                        {"gradients_bytes", r.memory.gradients},
                        {"optimizer_bytes", r.memory.optimizer},
                        {"activations_bytes", r.memory.activations},
                        {"activations_recompute_bytes", r.memory.activations_recompute},
                        {"logits_bytes", r.memory.logits}};
  document["kv_bytes_per_token"] = whole_number(r.kv_bytes_per_token);
  document["kv_cache"] = {{"batch", r.batch},
                          {"context", r.subject.shape.context},
                          {"bytes", whole_number(r.kv_bytes)}};
  document["times"] = step_json(r);
  document["levine"] = {{"transition_width", r.transition_width},
                        {"depth_efficient", r.depth_pays()}};
  for (const LawPlace& place : r.places) {
    document["laws"].push_back({{"name", place.info.name},
                                {"layers", place.optimum.layers},
                                {"width", place.optimum.width},
                                {"layers_deeper", place.layers_deeper},
                                {"evidence", to_string(place.evidence)}});
  }
  document["consensus"] = nullptr;
  if (r.consensus) {
    document["consensus"] = {{"layers", r.consensus->optimum.layers},
                             {"band", {r.consensus->band.low, r.consensus->band.high}},
                             {"loss_penalty", r.consensus->penalty},
                             {"evidence", to_string(r.consensus->evidence)}};
  }
  document["neighbours"] = Json::array();
  for (const CatalogueEntry* entry : r.neighbours) document["neighbours"].push_back(entry->name);
  return document;
}

}  // namespace fathom
