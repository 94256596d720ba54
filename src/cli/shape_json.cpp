#include "cli/shape_json.h"

namespace fathom {

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
          {"paper_12Ld2", count.paper_12Ld2},
          {"embedding", count.embedding},
          {"positions", count.positions},
          {"attention_matrices", count.attention_matrices},
          {"ffn_matrices", count.ffn_matrices},
          {"router", count.router},
          {"head", count.head},
          {"norms", count.norms},
          {"biases", count.biases}};
}

}  // namespace fathom
