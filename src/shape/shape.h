// Shape: everything that decides how large, costly and fast a dense transformer is.
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
};

/// A named entry of data/conventions.toml; ConfigError with a suggestion when there is none.
const Conventions& find_conventions(const std::string& name);

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
  Conventions conventions;

  bool gated() const { return ffn_matrices == 3; }
  std::int64_t attention_width() const { return heads * head_size; }
  std::int64_t kv_width() const { return kv_heads * head_size; }
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
