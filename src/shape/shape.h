// Shape: everything that determines how large, costly and fast a transformer is, dense or with a
// mixture of experts in place of the feed-forward.
//
// Pure data with one rule (validate). Every count has one function in this room:
// parameters.h, flops.h, memory.h, timing.h.
#pragma once

#include <cstdint>
#include <string>

#include "core/counts.h"
#include "core/enum_names.h"

namespace fathom {

enum class Norm { nonparametric, layer, layer_no_bias, rms };
constexpr auto enum_names(Norm) {
  return std::array{"nonparametric", "layer", "layer-no-bias", "rms"};
}
enum class Positions { none, rotary, alibi, relative, learned };
constexpr auto enum_names(Positions) {
  return std::array{"none", "rotary", "alibi", "relative", "learned"};
}
enum class QkNorm { none, per_head, full };
constexpr auto enum_names(QkNorm) {
  return std::array{"none", "per-head", "full"};
}

/// What a family of models has besides its matrices.
struct Conventions {
  std::string name = "llama";
  bool assumed = false;  // guessed, not read from the model's code
  Norm norm = Norm::rms;
  std::int64_t norms_per_layer = 2;
  bool final_norm = true;
  bool embedding_norm = false;
  bool qkv_bias = false;
  bool out_bias = false;
  bool ffn_bias = false;
  bool head_bias = false;
  QkNorm qk_norm = QkNorm::none;
  Positions positions = Positions::rotary;
  std::int64_t position_offset = 0;  // learned rows beyond the context (OPT has two)
  bool attention_sinks = false;      // one learned score per head (gpt-oss)
};

/// A named entry of data/conventions.toml; ConfigError with a suggestion when there is none.
const Conventions& find_conventions(const std::string& name);

/// A mixture of experts: `routed` feed-forwards of width `ffn`, of which a token visits `active`,
/// and shared ones that every token visits.
struct Experts {
  std::int64_t routed = 0;  // E; 0: a dense model
  std::int64_t active = 0;
  std::int64_t ffn = 0;           // of one routed expert
  std::int64_t shared_ffn = 0;    // of all shared experts together
  std::int64_t dense_layers = 0;  // layers with the ordinary feed-forward instead
  bool shared_gate = false;       // a learned weight of the shared part (Qwen)
  bool router_bias = false;
  bool expert_bias = false;
};

/// Multi-head latent attention (arXiv 2405.04434): keys and values are rebuilt from a latent of
/// `kv_rank` and a rotary key of `rope_size` that all heads share; queries perhaps from one of
/// `q_rank`. The shape's head size is that of a query, values have `value_size`.
struct LatentAttention {
  std::int64_t kv_rank = 0;  // 0: ordinary attention
  std::int64_t q_rank = 0;   // 0: queries come straight from the width
  std::int64_t rope_size = 0;
  std::int64_t value_size = 0;
};

struct Shape {
  std::int64_t layers = 0;        // L
  std::int64_t width = 0;         // D
  std::int64_t heads = 0;         // H
  std::int64_t kv_heads = 0;      // grouped-query heads; equal to heads without grouping
  std::int64_t head_size = 0;     // K, independent of width / heads
  std::int64_t ffn = 0;           // F
  std::int64_t ffn_matrices = 2;  // 2 plain, 3 gated
  std::int64_t vocab = 0;         // V
  std::int64_t context = 0;       // T
  bool tied = true;               // one matrix for embedding and head
  bool context_known = true;      // false: the source does not say, and `context` is the default
  Conventions conventions;
  Experts experts;
  LatentAttention latent;

  bool gated() const { return ffn_matrices == 3; }
  bool mixture() const { return experts.routed > 0; }
  bool latent_attention() const { return latent.kv_rank > 0; }
  std::int64_t expert_layers() const { return mixture() ? layers - experts.dense_layers : 0; }
  std::int64_t attention_width() const { return heads * head_size; }
  std::int64_t kv_width() const { return kv_heads * head_size; }
  /// The attention's output width, all heads together.
  std::int64_t value_width() const {
    return latent_attention() ? heads * latent.value_size : attention_width();
  }
};

inline constexpr std::int64_t kDefaultVocab = 50304;
inline constexpr std::int64_t kDefaultContext = 2048;

/// What a user asks for; zero means "not given" and is filled in by complete().
struct ShapeRequest {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t kv_group = 1;  // query heads per kv head, where kv_heads is not given
  std::int64_t head_size = 0;
  std::int64_t ffn = 0;
  double ffn_ratio = 0;  // F / D, where ffn is not given; 0: 4 plain, 8/3 gated
  bool gated = false;
  std::int64_t vocab = 0;
  std::int64_t context = 0;
  bool tied = true;
  std::string conventions;  // empty: gpt2 for plain, llama for gated
};

/// Fills in what was not given: heads from the usual head size, F = 4D or 8D/3 rounded to a
/// friendly multiple (so that a block has about 12 D^2 parameters either way), V and T from the
/// defaults.
Shape complete(const ShapeRequest& request);

/// ConfigError in one line unless the shape is possible and its counts fit 63 bits.
void validate(const Shape& shape);

/// What published models do: heads of 128 from this width on, of 64 below it.
inline constexpr std::int64_t kLargeHeadWidth = 1536;
constexpr std::int64_t full_head_size(double width) {
  return width >= as_double(kLargeHeadWidth) ? 128 : 64;
}

/// full_head_size, or the next smaller power of two that divides the width.
std::int64_t usual_head_size(std::int64_t width);

/// F / D of a request: its own, or 4 plain and 8/3 gated.
double feed_forward_ratio(const ShapeRequest& request);

/// What F is rounded to: 128, or 64 below width 1024.
constexpr std::int64_t feed_forward_multiple(std::int64_t width) {
  return width >= 1024 ? 128 : 64;
}

/// F for a width: the request's own, or its ratio rounded to a multiple of 128 (64 below width
/// 1024) and of `divisor`; plain 4D stays exact.
std::int64_t feed_forward_width(const ShapeRequest& request, std::int64_t divisor = 1);

/// "96x12288" -> layers and width. ConfigError otherwise.
ShapeRequest parse_depth_by_width(const std::string& text);
bool looks_like_depth_by_width(const std::string& text);
std::string depth_by_width(const Shape& shape);  // "96×12288"

}  // namespace fathom
