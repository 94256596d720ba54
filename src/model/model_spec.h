// The transformer family as data: every architectural variant is a value here, none is a class.
//
// One alphabet of sizes: L layers, D width, H heads, G key heads, K head size, F feed-forward
// width, V vocabulary, T context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/norm/norm.h"

namespace fathom::model {

enum class NormPlace : std::uint8_t { pre, post, none };
constexpr auto enum_names(NormPlace) {
  return std::array{"pre", "post", "none"};
}

/// Names of engine::ActivationKind, and a feed-forward without any.
enum class FeedForward : std::uint8_t { relu, gelu, gelu_tanh, swiglu, identity };
constexpr auto enum_names(FeedForward) {
  return std::array{"relu", "gelu", "gelu_tanh", "swiglu", "identity"};
}

enum class Positions : std::uint8_t { learned, rotary, none };
constexpr auto enum_names(Positions) {
  return std::array{"learned", "rotary", "none"};
}

/// Where the keys of attention come from (engine/ops/keys/keys.h).
enum class KeySource : std::uint8_t { tokens, smeared, projected, synthesised, sorted };
constexpr auto enum_names(KeySource) {
  return std::array{"tokens", "smeared", "projected", "synthesised", "sorted"};
}

enum class Parametrisation : std::uint8_t { standard, mup, completep };
constexpr auto enum_names(Parametrisation) {
  return std::array{"standard", "mup", "completep"};
}

/// Post-norm schemes: how strongly the stream is weighted against a branch.
enum class DepthScheme : std::uint8_t { none, admin, deepnorm };
constexpr auto enum_names(DepthScheme) {
  return std::array{"none", "admin", "deepnorm"};
}

/// visit_keys says what each value means, once, for readers of the code and of the help.
struct ModelSpec {
  std::int64_t layers = 2;
  std::int64_t width = 64;
  std::int64_t heads = 2;
  std::int64_t key_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t ffn = 0;
  std::int64_t vocab = 256;
  std::int64_t context = 128;
  std::int64_t embedding_rank = 0;
  bool tied = true;
  bool biases = true;

  NormPlace norm = NormPlace::pre;
  engine::NormKind norm_kind = engine::NormKind::layer;
  double norm_epsilon = 1e-5;
  bool residual = true;
  bool feed_forward = true;
  FeedForward activation = FeedForward::gelu;
  std::string order;

  engine::AttentionKind attention = engine::AttentionKind::softmax;
  engine::MaskKind mask = engine::MaskKind::causal;
  KeySource keys = KeySource::tokens;
  bool own_block = false;
  bool attention_norm = false;
  std::int64_t window = 0;
  std::int64_t stride = 0;
  std::int64_t global_tokens = 0;
  std::int64_t random_blocks = 0;
  std::int64_t block_size = 0;
  std::int64_t features = 0;
  std::int64_t projected_length = 0;
  std::int64_t slice = 0;
  std::vector<std::int64_t> layer_heads, layer_ffn;
  Positions positions = Positions::learned;
  double rotary_base = 10000;
  double dropout = 0;

  Parametrisation parametrisation = Parametrisation::standard;
  DepthScheme depth_scheme = DepthScheme::none;
  double init_std = 0.02;
  std::int64_t base_width = 256;
  std::int64_t base_layers = 2;
  double depth_alpha = 1;

  /// Columns of the stream that a layer reads and writes.
  std::int64_t layer_width() const { return slice ? slice : width; }
  std::int64_t resolved_key_heads() const { return key_heads ? key_heads : heads; }
  std::int64_t resolved_head_size() const { return head_size ? head_size : layer_width() / heads; }
  std::int64_t resolved_ffn() const { return ffn ? ffn : 4 * layer_width(); }
  /// Heads of the i-th attention and width of the i-th feed-forward, which lists may give.
  std::int64_t heads_of(std::size_t i) const {
    return layer_heads.empty() ? heads : layer_heads.at(i);
  }
  std::int64_t ffn_of(std::size_t i) const {
    return layer_ffn.empty() ? resolved_ffn() : layer_ffn.at(i);
  }
  bool has_uneven_layers() const { return !layer_heads.empty() || !layer_ffn.empty(); }
  std::int64_t resolved_block_size() const { return block_size ? block_size : 64; }
  /// Whether attention sees more, or less, than a band of keys.
  bool has_pattern() const {
    return stride > 0 || global_tokens > 0 || random_blocks > 0 || own_block;
  }
  /// The sublayers in order, e.g. "sfsf".
  std::string sublayers() const;

  /// Every key of a [model] table (core/spec_keys.h). The order is that of the written file, which
  /// a run's id hashes. So the order stays, and a new key is only_when_set: runs from before it
  /// keep their ids.
  template <class Self, class Visitor>
  static void visit_keys(Self& spec, Visitor& key) {
    key("layers", spec.layers, "L, blocks of attention and feed-forward", {1, 10000});
    key("width", spec.width, "D, width of the residual stream", {1, 1 << 17});
    key("heads", spec.heads, "H, query heads", {1, 4096});
    key("key_heads", spec.key_heads, "key and value heads; 0: as many as heads", {0, 4096});
    key("head_size", spec.head_size, "K; 0: width / heads", {0, 1 << 12});
    key("ffn", spec.ffn, "F, width of the feed-forward; 0: 4 D", {0, 1 << 20});
    key("vocab", spec.vocab, "V; in a run spec, that of the tokens when absent", {2, 1 << 24});
    key("context", spec.context, "T, tokens of a sequence", {1, 1 << 20});
    key("embedding_rank", spec.embedding_rank, "r: V x r table and r x D projection; 0: full",
        {0, 1 << 17});
    key("tied", spec.tied, "the output head shares the token embedding");
    key("biases", spec.biases, "linear layers have biases");
    key("norm", spec.norm, "where norms are placed");
    key("norm_kind", spec.norm_kind, "layer norm or RMS norm");
    key("norm_epsilon", spec.norm_epsilon, "added to the variance");
    key("residual", spec.residual, "branches add to the stream");
    key("feed_forward", spec.feed_forward, "blocks have a feed-forward");
    key("activation", spec.activation, "of the feed-forward");
    key("order", spec.order, "order of sublayers, s attention, f feed-forward; empty: sf, L times");
    key("attention", spec.attention, "how scores become weights");
    key("mask", spec.mask, "which keys a query sees");
    key("window", spec.window, "keys less than this far away; 0: all", {0, 1 << 20});
    key("positions", spec.positions, "how positions are encoded");
    key("rotary_base", spec.rotary_base, "base of the rotary frequencies");
    key("dropout", spec.dropout, "share of a branch's values that a training step drops");
    key("parametrisation", spec.parametrisation,
        "how initial weights and learning rates scale with the shape");
    key("depth_scheme", spec.depth_scheme,
        "post-norm only: how the stream is weighted against a branch");
    key("init_std", spec.init_std, "standard deviation of initial weights at the base shape");
    key("base_width", spec.base_width, "where the multipliers of muP and CompleteP are 1",
        {1, 1 << 17});
    key("base_layers", spec.base_layers, "likewise for depth", {1, 10000});
    key("depth_alpha", spec.depth_alpha, "CompleteP: 1; 0.5 is the depth-muP rule", {0.5, 1});
    key("stride", spec.stride, "also keys at multiples of this distance; 0: none",
        {.low = 0, .high = 1 << 20, .only_when_set = true});
    key("global_tokens", spec.global_tokens, "first tokens that see all and are seen by all",
        {.low = 0, .high = 1 << 20, .only_when_set = true});
    key("random_blocks", spec.random_blocks, "blocks of keys drawn for each block of queries",
        {.low = 0, .high = 1 << 12, .only_when_set = true});
    key("own_block", spec.own_block, "keys of the query's own block", {.only_when_set = true});
    key("block_size", spec.block_size, "positions per block of the pattern; 0: 64",
        {.low = 0, .high = 1 << 12, .only_when_set = true});
    key("features", spec.features, "random features of a head, for attention = performer",
        {.low = 0, .high = 1 << 12, .only_when_set = true});
    key("keys", spec.keys, "where keys come from", {.only_when_set = true});
    key("projected_length", spec.projected_length, "number of keys left, for keys = projected",
        {.low = 0, .high = 1 << 20, .only_when_set = true});
    key("attention_norm", spec.attention_norm, "RMS norm of the heads' output at each token",
        {.only_when_set = true});
    key("slice", spec.slice, "columns of the stream that a layer uses, rotating; 0: all",
        {.low = 0, .high = 1 << 17, .only_when_set = true});
    key("layer_heads", spec.layer_heads, "heads of each layer, of the size that heads gives",
        {.only_when_set = true});
    key("layer_ffn", spec.layer_ffn, "width of each feed-forward", {.only_when_set = true});
  }
};

/// The prefix of a sublayer's parameters, "sub.3.attention".
std::string sublayer_name(std::size_t index, bool attention);

/// ConfigError, naming the key, when the values do not make a model.
void validate(const ModelSpec& spec);

}  // namespace fathom::model
