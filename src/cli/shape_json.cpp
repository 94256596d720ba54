#include "cli/shape_json.h"

namespace fathom {

Json shape_json(const Shape& shape) {
  return {{"layers", shape.layers},
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
}

Json parameters_json(const ParameterCount& count) {
  return {{"total", count.total()},
          {"non_embedding", count.non_embedding()},
          {"paper_12Ld2", count.paper_12Ld2},
          {"embedding", count.embedding},
          {"positions", count.positions},
          {"attention_matrices", count.attention_matrices},
          {"ffn_matrices", count.ffn_matrices},
          {"head", count.head},
          {"norms", count.norms},
          {"biases", count.biases}};
}

}  // namespace fathom
