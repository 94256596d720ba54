// The families of models Fathom reads, as a table: structure, config keys and tensor names. A new
// family whose parts are known is a new row (families.cpp), not new code.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "pretrained/layout.h"

namespace fathom::pretrained {

/// How queries, keys and values lie in the file.
enum class QkvForm : std::uint8_t {
  separate,  // three matrices
  stacked,   // one, all queries first
  per_head,  // one, for each head its query, key and value rows (GPT-NeoX)
};

/// Which layers see only a window of keys where config.json has no `layer_types`.
enum class WindowRule : std::uint8_t { none, all, even, pattern, from_layer };

/// Tensor names without ".weight" and ".bias"; empty: the family has no such part.
struct TensorNames {
  std::vector<std::string_view> prefixes;  // of the whole model, tried in order
  std::string_view layer;                  // "layers.{}."
  std::string_view tokens, positions, token_types, embedding_norm;
  std::string_view project_in, project_out;
  std::string_view final_norm;
  std::string_view qkv;  // stacked or per head
  std::string_view q, k, v, out, q_norm, k_norm;
  std::string_view gate, up, down;  // up alone where gate is empty; gate_up: fused, gate first
  std::string_view gate_up;
  std::string_view attention_in, attention_out, ffn_in, ffn_out;  // norms before, after a branch
  std::string_view head;                                          // with its own prefix
  std::string_view masked_dense, masked_norm, masked_bias;        // of a masked-language head
};

struct Family {
  std::string_view type;  // config.json's model_type
  Layout base;            // its structure; sizes are filled in from the config
  TensorNames names;
  QkvForm qkv = QkvForm::separate;
  bool transposed = false;  // matrices are [in, out]
  WindowRule windows = WindowRule::none;

  std::string_view width_key = "hidden_size", layers_key = "num_hidden_layers",
                   heads_key = "num_attention_heads", ffn_key = "intermediate_size",
                   context_key = "max_position_embeddings", epsilon_key = "rms_norm_eps",
                   activation_key = "hidden_act";
  bool embedding_root = false;  // Gemma: the embedding is multiplied by sqrt(D)
  /// What config.json means where a key is absent, as JSON: the defaults of transformers' class.
  /// Parts of models with several towers leave such keys out.
  std::string_view defaults = "{}";
};

/// ConfigError that lists the known types, for any other.
const Family& find_family(const std::string& model_type, const std::string& origin);
std::vector<std::string> family_names();

/// The layout of a model by its config.json; ConfigError that names a key which is missing, of the
/// wrong type, or asks for something unknown.
Layout read_layout(const Family& family, const nlohmann::json& config, const std::string& origin);

}  // namespace fathom::pretrained
