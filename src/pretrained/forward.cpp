#include "pretrained/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "pretrained/block.h"
#include "pretrained/kernels.h"

namespace fathom::pretrained {
namespace {

/// Buffers of one layer run; the numbers are their places in Scratch.
struct Slot {
  enum : std::size_t { normed, branch, qkv, scores, mixed, wide, active, final_state, head_rows };
};

}  // namespace

float* Scratch::take(std::size_t slot, std::int64_t count) {
  if (slots_.size() <= slot) slots_.resize(slot + 1);
  if (slots_[slot].size() < as_size(count)) slots_[slot].resize(as_size(count));
  return slots_[slot].data();
}

Forward::Forward(const Weights& weights, std::int64_t tokens)
    : weights_(weights), layout_(weights.layout()), tokens_(tokens) {
  if (tokens > layout_.context && layout_.learned_positions) {
    throw ConfigError(fmt::format("a window of {} tokens is longer than the model's context of {}",
                                  tokens, layout_.context));
  }
  for (const RotarySpec& spec : layout_.rotary) {
    const RotaryTable table = rotary_table(spec, tokens);
    Turn turn;
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (const double inverse : table.inverse) {
        // Angles in f32, as the models were trained.
        const float angle = static_cast<float>(t) * static_cast<float>(inverse);
        turn.cosines.push_back(static_cast<float>(std::cos(angle) * table.amplitude));
        turn.sines.push_back(static_cast<float>(std::sin(angle) * table.amplitude));
      }
    }
    turns_.push_back(std::move(turn));
  }
}

void Forward::norm(const NormWeights& weights, const float* x, float* y) const {
  normalise(x, tokens_, layout_.width, layout_.norm, layout_.epsilon, weights, y);
}

void Forward::require_id(std::int64_t id) const {
  if (id < layout_.vocab) return;
  throw DataError(
      fmt::format("token {} is outside the model's vocabulary of {}", id, layout_.vocab));
}

void Forward::embed(std::span<const data::TokenId> ids, float* h) const {
  const EndWeights& ends = weights_.ends();
  const std::int64_t D = layout_.width, E = layout_.embedding_width;
  std::vector<float> rows(as_size(tokens_ * E));
  for (std::int64_t t = 0; t < tokens_; ++t) {
    const std::int64_t id = ids[as_size(t)];
    if (id < 0) throw DataError(fmt::format("token {} stands where a text is read", id));
    require_id(id);
    const float* row = ends.tokens.values.data() + id * E;
    for (std::int64_t i = 0; i < E; ++i) {
      rows[as_size(t * E + i)] = row[i] * layout_.embedding_scale;
    }
  }
  if (ends.project_in.exists()) {
    multiply(rows.data(), tokens_, ends.project_in, {}, h);
  } else {
    std::copy(rows.begin(), rows.end(), h);
  }
  for (std::int64_t t = 0; t < tokens_; ++t) {
    float* row = h + t * D;
    if (ends.positions.exists()) {
      add_scaled(row, ends.positions.values.data() + (t + layout_.position_offset) * D, D, 1);
    }
    if (ends.token_types.exists()) add_scaled(row, ends.token_types.values.data(), D, 1);
  }
  if (ends.embedding_norm.exists()) norm(ends.embedding_norm, h, h);
}

void Forward::rotate(int table, float* qkv_rows) const {
  const Turn& turn = turns_[static_cast<std::size_t>(table)];
  const std::int64_t half = layout_.rotary[static_cast<std::size_t>(table)].size / 2;
  const std::int64_t K = layout_.head_size, cols = layout_.qkv_rows();
  for (std::int64_t t = 0; t < tokens_; ++t) {
    const float* c = turn.cosines.data() + t * half;
    const float* s = turn.sines.data() + t * half;
    for (std::int64_t head = 0; head < layout_.heads + layout_.key_heads; ++head) {
      float* x = qkv_rows + t * cols + head * K;
      for (std::int64_t j = 0; j < half; ++j) {
        const float a = x[j], b = x[j + half];
        x[j] = a * c[j] - b * s[j];
        x[j + half] = b * c[j] + a * s[j];
      }
    }
  }
}

void Forward::prepare_heads(const LayerWeights& layer, const LayerLayout& own, float* qkv) const {
  const std::int64_t queries = layout_.heads * layout_.head_size,
                     keys = layout_.key_heads * layout_.head_size;
  if (layout_.qk_norm != QkNorm::none) {
    const bool whole = layout_.qk_norm == QkNorm::whole;
    const std::int64_t query_parts = whole ? 1 : layout_.heads,
                       key_parts = whole ? 1 : layout_.key_heads;
    for (std::int64_t t = 0; t < tokens_; ++t) {
      float* q = qkv + t * layout_.qkv_rows();
      float* k = q + queries;
      normalise(q, query_parts, queries / query_parts, NormKind::rms, layout_.epsilon, layer.q_norm,
                q);
      normalise(k, key_parts, keys / key_parts, NormKind::rms, layout_.epsilon, layer.k_norm, k);
    }
  }
  if (own.rotary >= 0) rotate(own.rotary, qkv);
}

void Forward::soften(const LayerLayout& own, std::int64_t i, float* scores) const {
  const std::int64_t first = own.window > 0 ? std::max<std::int64_t>(0, i - own.window + 1) : 0;
  const std::int64_t last = layout_.causal ? i : tokens_ - 1;
  softmax_row(scores + i * tokens_, tokens_, first, last, layout_.attention_cap);
}

void Forward::attend(const LayerWeights& layer, std::int64_t index, const float* x,
                     Scratch& scratch, const LayerEdit& edit, const LayerWatch& watch,
                     float* y) const {
  const LayerLayout& own = layout_.layers[as_size(index)];
  const std::int64_t T = tokens_, H = layout_.heads, G = layout_.key_heads, K = layout_.head_size;
  const std::int64_t cols = layout_.qkv_rows();
  float* all = scratch.take(Slot::qkv, T * cols);
  multiply(x, T, layer.qkv, layer.qkv_bias, all);
  prepare_heads(layer, own, all);
  float* weights = scratch.take(Slot::scores, T * T);
  float* out = scratch.take(Slot::mixed, T * H * K);
  for (std::int64_t head = 0; head < H; ++head) {
    const std::int64_t group = head * G / H;
    multiply_strided(T, T, K, own.scale, all + head * K, cols, all + (H + group) * K, cols, true,
                     weights, T);
    for (std::int64_t i = 0; i < T; ++i) soften(own, i, weights);
    if (watch.heads) watch.heads(head, weights);
    multiply_strided(T, K, T, 1, weights, T, all + (H + G + group) * K, cols, false, out + head * K,
                     H * K);
  }
  for (const SilentHead& silent : edit.silent) {
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t i = 0; i < K; ++i) {
        out[(t * H + silent.head) * K + i] = silent.value == nullptr ? 0 : silent.value[i];
      }
    }
  }
  if (watch.head_outputs != nullptr) std::copy_n(out, T * H * K, watch.head_outputs);
  multiply(out, T, layer.out, layer.out_bias, y);
}

void Forward::feed_forward(const LayerWeights& layer, const float* x, Scratch& scratch,
                           float* y) const {
  float* up = scratch.take(Slot::wide, tokens_ * layer.up.rows);
  float* middle = scratch.take(Slot::active, tokens_ * layout_.ffn);
  multiply(x, tokens_, layer.up, layer.up_bias, up);
  activate(up, tokens_, layout_.ffn, layout_.activation, layout_.gated, middle);
  multiply(middle, tokens_, layer.down, layer.down_bias, y);
}

/// One layer's work on one window.
struct Forward::Work {
  const Forward& forward;
  const LayerWeights& layer;
  std::int64_t index;
  float* h;
  Scratch& scratch;
  const LayerEdit& edit;
  const LayerWatch& watch;
  std::int64_t count = forward.tokens_ * forward.layout_.width;
  float* results = scratch.take(Slot::branch, 2 * count);  // of attention, of the feed-forward

  const float* reads(const NormWeights& weights) const {
    if (!weights.exists()) return h;
    float* x = scratch.take(Slot::normed, count);
    forward.norm(weights, h, x);
    return x;
  }
  float* attend(const float* x) const {
    forward.attend(layer, index, x, scratch, edit, watch, results);
    return results;
  }
  float* feed_forward(const float* x) const {
    forward.feed_forward(layer, x, scratch, results + count);
    return results + count;
  }
  void add(float* y, const NormWeights& weights) const {
    const bool post = forward.layout_.block == Block::post;
    if (!post && weights.exists()) forward.norm(weights, y, y);
    add_scaled(h, y, count, forward.layout_.branch_scale);
    if (post && weights.exists()) forward.norm(weights, h, h);
  }
  void middle() const {
    if (watch.middle != nullptr) std::copy_n(h, count, watch.middle);
  }
};

void Forward::run_layer(const LayerWeights& layer, std::int64_t index, float* h, Scratch& scratch,
                        const LayerEdit& edit, const LayerWatch& watch) const {
  Work work{*this, layer, index, h, scratch, edit, watch};
  run_block(work, layout_.block, layer, edit.attention, edit.ffn);
}

void Forward::logits(const float* h, std::int64_t rows, Scratch& scratch, float* out) const {
  const EndWeights& ends = weights_.ends();
  const std::int64_t D = layout_.width, V = layout_.vocab;
  float* x = scratch.take(Slot::final_state, 2 * rows * D);
  float* spare = x + rows * D;
  if (ends.final_norm.exists()) {
    normalise(h, rows, D, layout_.norm, layout_.epsilon, ends.final_norm, x);
  } else {
    std::copy_n(h, rows * D, x);
  }
  if (ends.masked_dense.exists()) {
    multiply(x, rows, ends.masked_dense, ends.masked_dense_bias, spare);
    activate(spare, rows, D, layout_.activation, false, x);
    normalise(x, rows, D, layout_.norm, layout_.epsilon, ends.masked_norm, x);
  }
  if (ends.project_out.exists()) {
    multiply(x, rows, ends.project_out, {}, spare);
    x = spare;
  }
  multiply(x, rows, ends.head.exists() ? ends.head : ends.tokens, ends.head_bias, out);
  if (layout_.head_scale != 1) {
    for (std::int64_t i = 0; i < rows * V; ++i) out[i] *= layout_.head_scale;
  }
  if (layout_.final_cap > 0) {
    const float cap = layout_.final_cap;
    for (std::int64_t i = 0; i < rows * V; ++i) out[i] = cap * std::tanh(out[i] / cap);
  }
}

void Forward::losses(const float* h, std::span<const data::TokenId> targets, Scratch& scratch,
                     float* out) const {
  constexpr std::int64_t kRows = 64;  // states whose logits are held at once
  const std::int64_t V = layout_.vocab, count = std::ssize(targets);
  float* rows = scratch.take(Slot::head_rows, kRows * V);
  for (std::int64_t begin = 0; begin < count; begin += kRows) {
    const std::int64_t size = std::min(kRows, count - begin);
    logits(h + begin * layout_.width, size, scratch, rows);
    for (std::int64_t i = 0; i < size; ++i) {
      const data::TokenId target = targets[as_size(begin + i)];
      require_id(target);
      const float* row = rows + i * V;
      out[begin + i] =
          target < 0 ? 0
                     : static_cast<float>(log_sum_exp(row, V) - static_cast<double>(row[target]));
    }
  }
}

}  // namespace fathom::pretrained
