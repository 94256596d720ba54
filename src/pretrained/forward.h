// One window of text through a model, layer by layer, on one thread.
//
// The stream h [T, D] belongs to the caller, who may skip layers, run them in another order or
// switch off a half of one: that is all that `fathom probe` does to a model. Removing a half
// leaves the stream as it is; in post-norm models its norm goes with it.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "pretrained/weights.h"

namespace fathom::pretrained {

/// Attention weights of one head, [T, T], row i a query.
using HeadWatcher = std::function<void(std::int64_t head, const float* weights)>;

/// A head whose output is replaced.
struct SilentHead {
  std::int64_t head = 0;
  const float* value = nullptr;  // by these K numbers; nullptr: by zero
};

/// What is done to one layer.
struct LayerEdit {
  bool attention = true;
  bool ffn = true;
  std::vector<SilentHead> silent = {};
};

struct LayerWatch {
  float* middle = nullptr;        // [T, D]: the stream after attention
  float* head_outputs = nullptr;  // [T, H K]: what the output projection reads
  HeadWatcher heads;
};

/// Buffers that grow to the largest need and stay.
class Scratch {
 public:
  float* take(std::size_t slot, std::int64_t count);

 private:
  std::vector<std::vector<float>> slots_;
};

class Forward {
 public:
  /// `tokens`: the length of windows. The weights must outlive it.
  Forward(const Weights& weights, std::int64_t tokens);
  virtual ~Forward() = default;
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;

  std::int64_t tokens() const { return tokens_; }
  void embed(std::span<const data::TokenId> ids, float* h) const;
  virtual void run_layer(const LayerWeights& layer, std::int64_t index, float* h, Scratch& scratch,
                         const LayerEdit& edit = {}, const LayerWatch& watch = {}) const;
  /// The logits [rows, V] of `rows` states, final norm and head applied.
  virtual void logits(const float* h, std::int64_t rows, Scratch& scratch, float* out) const;
  /// -ln p of targets[i] after state i; a negative target does not count and gives 0.
  void losses(const float* h, std::span<const data::TokenId> targets, Scratch& scratch,
              float* out) const;

  /// Cosines and sines [T, R/2] of one rotary table.
  struct Turn {
    std::vector<float> cosines, sines;
  };
  const std::vector<Turn>& turns() const { return turns_; }

 private:
  friend class Backward;
  void require_id(std::int64_t id) const;
  struct Work;
  void attend(const LayerWeights& layer, std::int64_t index, const float* x, Scratch& scratch,
              const LayerEdit& edit, const LayerWatch& watch, float* y) const;
  void feed_forward(const LayerWeights& layer, const float* x, Scratch& scratch, float* y) const;
  /// Norms of queries and keys, then rotary positions, on fused rows.
  void prepare_heads(const LayerWeights& layer, const LayerLayout& own, float* qkv) const;
  /// Row i of scores [T, T] to attention weights.
  void soften(const LayerLayout& own, std::int64_t i, float* scores) const;
  void rotate(int table, float* qkv) const;
  void norm(const NormWeights& weights, const float* x, float* y) const;

  const Weights& weights_;
  const Layout& layout_;
  std::int64_t tokens_;
  std::vector<Turn> turns_;
};

}  // namespace fathom::pretrained
