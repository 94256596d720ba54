#include "model/hf_names.h"

#include <fmt/format.h>

namespace fathom::model {
namespace {

/// Collects the parameters of one layout.
class Names {
 public:
  explicit Names(const ModelSpec& spec) : spec_(spec) {}

  void matrix(const std::string& own, std::int64_t rows, std::int64_t cols,
              std::vector<HfPiece> pieces) {
    list_.push_back({own, rows, cols, false, std::move(pieces)});
  }
  void matrix(const std::string& own, std::int64_t rows, std::int64_t cols,
              const std::string& foreign, bool transposed = false) {
    matrix(own, rows, cols, {{foreign, 0, rows, transposed}});
  }
  void vector(const std::string& own, std::int64_t size, const std::string& foreign) {
    list_.push_back({own, 1, size, true, {{foreign, 0, 1, false}}});
  }

  std::vector<HfParameter> gpt2() {
    const std::int64_t D = spec_.width, F = spec_.resolved_ffn();
    matrix("tokens.weight", spec_.vocab, D, "transformer.wte.weight");
    matrix("positions.weight", spec_.context, D, "transformer.wpe.weight");
    for (std::int64_t layer = 0; layer < spec_.layers; ++layer) {
      const std::string h = fmt::format("transformer.h.{}.", layer);
      const std::string a = fmt::format("sub.{}.attention.", 2 * layer);
      const std::string f = fmt::format("sub.{}.ffn.", 2 * layer + 1);
      norm(a + "norm", h + "ln_1");
      conv(a + "qkv", 3 * D, D, h + "attn.c_attn");
      conv(a + "out", D, D, h + "attn.c_proj");
      norm(f + "norm", h + "ln_2");
      conv(f + "up", F, D, h + "mlp.c_fc");
      conv(f + "down", D, F, h + "mlp.c_proj");
    }
    norm("final_norm", "transformer.ln_f");
    if (!spec_.tied) matrix("head.weight", spec_.vocab, D, "lm_head.weight");
    return std::move(list_);
  }

  std::vector<HfParameter> llama() {
    const std::int64_t D = spec_.width, F = spec_.resolved_ffn();
    const std::int64_t query = spec_.heads * spec_.resolved_head_size();
    const std::int64_t kv = spec_.resolved_key_heads() * spec_.resolved_head_size();
    matrix("tokens.weight", spec_.vocab, D, "model.embed_tokens.weight");
    for (std::int64_t layer = 0; layer < spec_.layers; ++layer) {
      const std::string h = fmt::format("model.layers.{}.", layer);
      const std::string a = fmt::format("sub.{}.attention.", 2 * layer);
      const std::string f = fmt::format("sub.{}.ffn.", 2 * layer + 1);
      vector(a + "norm.gain", D, h + "input_layernorm.weight");
      matrix(a + "qkv.weight", query + 2 * kv, D,
             {{h + "self_attn.q_proj.weight", 0, query, false},
              {h + "self_attn.k_proj.weight", query, kv, false},
              {h + "self_attn.v_proj.weight", query + kv, kv, false}});
      matrix(a + "out.weight", D, query, h + "self_attn.o_proj.weight");
      vector(f + "norm.gain", D, h + "post_attention_layernorm.weight");
      matrix(f + "up.weight", 2 * F, D,
             {{h + "mlp.gate_proj.weight", 0, F, false}, {h + "mlp.up_proj.weight", F, F, false}});
      matrix(f + "down.weight", D, F, h + "mlp.down_proj.weight");
    }
    vector("final_norm.gain", D, "model.norm.weight");
    if (!spec_.tied) matrix("head.weight", spec_.vocab, D, "lm_head.weight");
    return std::move(list_);
  }

 private:
  void norm(const std::string& own, const std::string& foreign) {
    vector(own + ".gain", spec_.width, foreign + ".weight");
    vector(own + ".bias", spec_.width, foreign + ".bias");
  }
  void conv(const std::string& own, std::int64_t out, std::int64_t in, const std::string& foreign) {
    matrix(own + ".weight", out, in, foreign + ".weight", true);
    vector(own + ".bias", out, foreign + ".bias");
  }

  const ModelSpec& spec_;
  std::vector<HfParameter> list_;
};

}  // namespace

std::vector<HfParameter> hf_parameters(const ModelSpec& spec, HfFormat format) {
  Names names(spec);
  return format == HfFormat::gpt2 ? names.gpt2() : names.llama();
}

}  // namespace fathom::model
