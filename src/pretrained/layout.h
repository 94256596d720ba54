// What a model computes, as data: one description serves the forward pass of every family.
//
// Sizes: L layers, D width, H heads, G key heads, K head size, F feed-forward, V vocabulary. A
// layer maps the stream h_l to h_{l+1}; its halves are attention and feed-forward:
//
//   pre        x += attn(norm x);            x += ffn(norm x)
//   parallel   x += attn(norm x) + ffn(norm' x), both from the same x
//   sandwich   x += norm(attn(norm x));      x += norm(ffn(norm x))        (Gemma 2 and 3)
//   branch     x += norm(attn(x));           x += norm(ffn(x))             (OLMo 2)
//   post       x = norm(x + attn(x));        x = norm(x + ffn(x))          (BERT, OPT-350m)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "pretrained/rotary.h"

namespace fathom::pretrained {

enum class NormKind : std::uint8_t { layer, rms };
enum class Block : std::uint8_t { pre, parallel, sandwich, branch, post };
enum class QkNorm : std::uint8_t { none, per_head, whole };
enum class Activation : std::uint8_t { relu, gelu, gelu_tanh, silu, identity };
enum class HeadKind : std::uint8_t { plain, masked, none };

/// One layer where layers differ.
struct LayerLayout {
  std::int64_t window = 0;  // keys less than this far back; 0: all
  int rotary = -1;          // which of Layout::rotary; -1: none
  float scale = 1;          // of attention scores
};

struct Layout {
  std::string family;
  std::int64_t width = 0, heads = 0, key_heads = 0, head_size = 0, ffn = 0, vocab = 0, context = 0;
  std::int64_t embedding_width = 0;  // D unless the table is narrower (OPT-350m)
  std::vector<LayerLayout> layers;
  std::vector<RotarySpec> rotary;

  Block block = Block::pre;
  NormKind norm = NormKind::rms;
  double epsilon = 1e-6;
  bool gain_plus_one = false;  // the stored gain is w of (1 + w)
  QkNorm qk_norm = QkNorm::none;
  Activation activation = Activation::silu;
  bool gated = true;
  bool causal = true;

  bool learned_positions = false;
  std::int64_t position_offset = 0;
  bool token_types = false;
  bool embedding_norm = false;
  bool final_norm = true;
  bool tied = false;
  HeadKind head = HeadKind::plain;

  float embedding_scale = 1;
  float branch_scale = 1;   // of what a half adds to the stream
  float head_scale = 1;     // of the logits
  float attention_cap = 0;  // c tanh(score / c); 0: none
  float final_cap = 0;

  std::int64_t depth() const { return static_cast<std::int64_t>(layers.size()); }
  std::int64_t qkv_rows() const { return (heads + 2 * key_heads) * head_size; }
};

}  // namespace fathom::pretrained
