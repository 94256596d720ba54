// The transformer family as data: every architectural variant is a value here, none is a class.
//
// One alphabet of sizes: L layers, D width, H heads, G key heads, K head size, F feed-forward
// width, V vocabulary, T context.
#pragma once

#include <cstdint>
#include <string>

#include "engine/plan/op.h"

namespace fathom::model {

enum class NormPlace : std::uint8_t { pre, post, none };
enum class FeedForward : std::uint8_t { relu, gelu, gelu_tanh, swiglu, identity };
enum class Positions : std::uint8_t { learned, rotary, none };
enum class Parametrisation : std::uint8_t { standard, mup, completep };
/// Post-norm schemes: how strongly the stream counts against a branch.
enum class DepthScheme : std::uint8_t { none, admin, deepnorm };

struct ModelSpec {
  std::int64_t layers = 2;
  std::int64_t width = 64;
  std::int64_t heads = 2;
  std::int64_t key_heads = 0;  // 0: as many as heads
  std::int64_t head_size = 0;  // 0: width / heads
  std::int64_t ffn = 0;        // 0: 4 D
  std::int64_t vocab = 256;
  std::int64_t context = 128;
  std::int64_t embedding_rank = 0;  // 0: full; r: V x r table and r x D projection
  bool tied = true;                 // the head shares the token table
  bool biases = true;               // of linear layers

  NormPlace norm = NormPlace::pre;
  engine::NormKind norm_kind = engine::NormKind::layer;
  double norm_epsilon = 1e-5;
  bool residual = true;
  bool feed_forward = true;
  FeedForward activation = FeedForward::gelu;
  std::string order;  // of sublayers, "s" attention and "f" feed-forward; empty: "sf" L times

  engine::AttentionKind attention = engine::AttentionKind::softmax;
  engine::MaskKind mask = engine::MaskKind::causal;
  std::int64_t window = 0;  // local attention: keys less than this far away; 0: all
  Positions positions = Positions::learned;
  double rotary_base = 10000;
  double dropout = 0;

  Parametrisation parametrisation = Parametrisation::standard;
  DepthScheme depth_scheme = DepthScheme::none;
  double init_std = 0.02;
  std::int64_t base_width = 256;  // where muP and CompleteP multipliers are 1
  std::int64_t base_layers = 2;
  double depth_alpha = 1;  // CompleteP: 1; 0.5 is the depth-muP rule

  std::int64_t resolved_key_heads() const { return key_heads ? key_heads : heads; }
  std::int64_t resolved_head_size() const { return head_size ? head_size : width / heads; }
  std::int64_t resolved_ffn() const { return ffn ? ffn : 4 * width; }
  /// The sublayers in order, e.g. "sfsf".
  std::string sublayers() const;
};

/// ConfigError, naming the key, when the values do not make a model.
void validate(const ModelSpec& spec);

}  // namespace fathom::model
