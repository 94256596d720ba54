// Attention by features in time linear in the context (engine/ops/attention/attention.h): chunks of
// 64 positions, whose pairs are computed directly, and states [F, K + 1] that cover all other
// chunks. One task is one sequence and one key head with all the query heads that share it. Values
// have a column of ones, so that a state also holds the sums that weights are divided by.
#include "engine/ops/attention/attention_gemm.h"

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

class FeatureTask : public Head {
 public:
  FeatureTask(const AttentionArgs& arguments, std::int64_t task, float* scratch)
      : Head(arguments, task),
        features_(arguments.features),
        wide_(padded(arguments.features, kLanes)),
        values_wide_(padded(arguments.head_size + 1, kLanes)),
        memory_(scratch) {
    keys_ = cut(padded_context * wide_);
    values_ = cut(padded_context * values_wide_);
    keys_t_ = cut(kBlock * wide_);
    values_t_ = cut(kBlock * values_wide_);
    raw_ = cut(kBlock * stride);
    q_ = cut(kBlock * wide_);
    dy_ = cut(kBlock * values_wide_);
    d_features_ = cut(kBlock * wide_);
    y_ = cut(kBlock * values_wide_);
    scores_ = cut(kBlock * kBlock);
    slopes_ = cut(kBlock * kBlock);
    state_ = cut(wide_ * values_wide_);
    state_t_ = cut(wide_ * values_wide_);
    directions_ = cut(wide_ * stride);
    directions_t_ = cut(wide_ * stride);
    read_directions();
  }

  /// The size of all of the above.
  static std::int64_t floats(const AttentionArgs& args) {
    const std::int64_t rows = padded(args.context, kBlock), stride = padded(args.head_size, kLanes);
    const std::int64_t wide = padded(args.features, kLanes);
    const std::int64_t values = padded(args.head_size + 1, kLanes);
    return (rows + 3 * kBlock) * (wide + values) + kBlock * stride + 2 * kBlock * kBlock +
           2 * wide * (values + stride);
  }

  template <class T>
  void forward() {
    map_keys<T>();
    clear(state_, wide_ * values_wide_);
    if (!masked()) {
      for (std::int64_t t = 0; t < context; t += kBlock) add_keys(t);
    }
    for (std::int64_t t = 0; t < context; t += kBlock) {
      if (masked()) transpose_block(keys_ + t * wide_, wide_, keys_t_);
      for (std::int64_t h = first_head(); h < first_head() + group(); ++h) {
        map_queries<T>(h, t);
        gemm(kBlock, values_wide_, features_, q_, wide_, 1, state_, values_wide_, y_, values_wide_,
             false);
        if (masked()) {
          score_chunk();
          gemm(kBlock, values_wide_, kBlock, scores_, kBlock, 1, values_ + t * values_wide_,
               values_wide_, y_, values_wide_, true);
        }
        write_rows<T>(h, t);
      }
      if (masked()) add_keys(t);
    }
  }

  template <class T>
  void backward() {
    map_keys<T>();
    backward_queries<T>();
    backward_keys<T>();
  }

 private:
  float* cut(std::int64_t count) {
    float* place = memory_;
    memory_ += count;
    return place;
  }
  static void clear(float* place, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kLanes) store(place + i, Vec{});
  }
  bool masked() const { return args.mask != MaskKind::bidirectional; }
  std::int64_t first_head() const { return key_head * group(); }
  float scale_root() const { return square_root(splat(args.scale))[0]; }

  // ---- features

  void read_directions() {
    if (args.kind != AttentionKind::performer) return;
    clear(directions_, wide_ * stride);
    clear(directions_t_, wide_ * stride);
    for (std::int64_t m = 0; m < features_; ++m) {
      for (std::int64_t c = 0; c < size; ++c) {
        const float w = scale_root() * args.directions[m * size + c];
        directions_[m * stride + c] = w;
        directions_t_[c * wide_ + m] = w;
      }
    }
  }

  /// Mapped rows of a chunk; random features are left as logarithms, and their largest is returned.
  template <class T>
  float map_rows(std::int64_t column, std::int64_t first, float* out) {
    const T* qkv = static_cast<const T*>(args.qkv.data);
    const bool random = args.kind == AttentionKind::performer;
    gather(qkv, qkv_cols(), column, first, kBlock, true, true, random ? raw_ : out);
    if (!random) return 0;
    gemm(kBlock, wide_, size, raw_, stride, 1, directions_t_, wide_, out, wide_, false);
    float top = kMasked;
    for (std::int64_t r = 0; r < kBlock; ++r) {
      Vec square{};
      for (std::int64_t c = 0; c < stride; c += kLanes) {
        square += load(raw_ + r * stride + c) * load(raw_ + r * stride + c);
      }
      const float half = 0.5f * args.scale * sum(square);
      for (std::int64_t m = 0; m < features_; ++m) {
        float& value = out[r * wide_ + m];
        value -= half;
        if (first + r < context && value > top) top = value;
      }
    }
    return top;
  }
  /// exp(x - top) of a row of logarithms; zeros in the padding and beyond the context.
  void exponentiate(float* row, std::int64_t t, float top) const {
    for (std::int64_t m = 0; m < wide_; m += kLanes) {
      const VecI inside = lane_numbers() + static_cast<std::int32_t>(m) <
                          static_cast<std::int32_t>(t < context ? features_ : 0);
      store(row + m, select(inside, exp(load(row + m) - top), Vec{}));
    }
  }

  template <class T>
  void map_keys() {
    float top = kMasked;
    for (std::int64_t t = 0; t < context; t += kBlock) {
      const float own = map_rows<T>(key_column(), t, keys_ + t * wide_);
      top = own > top ? own : top;
      gather(static_cast<const T*>(args.qkv.data), qkv_cols(), value_column(), t, kBlock, false,
             false, raw_);
      widen(raw_, t, values_ + t * values_wide_);
    }
    if (args.kind != AttentionKind::performer) return;
    // A factor common to all keys cancels.
    for (std::int64_t t = 0; t < padded_context; ++t) exponentiate(keys_ + t * wide_, t, top);
  }
  template <class T>
  void map_queries(std::int64_t h, std::int64_t first) {
    map_rows<T>(h * size, first, q_);
    if (args.kind != AttentionKind::performer) return;
    for (std::int64_t r = 0; r < kBlock; ++r) {
      float top = kMasked;
      for (std::int64_t m = 0; m < features_; ++m) {
        top = q_[r * wide_ + m] > top ? q_[r * wide_ + m] : top;
      }
      exponentiate(q_ + r * wide_, first + r, top);
    }
  }
  /// Rows of K numbers followed by a one; rows beyond the context are zero.
  void widen(const float* rows, std::int64_t first, float* out) const {
    for (std::int64_t r = 0; r < kBlock; ++r) {
      clear(out + r * values_wide_, values_wide_);
      for (std::int64_t c = 0; c < size; ++c) out[r * values_wide_ + c] = rows[r * stride + c];
      out[r * values_wide_ + size] = first + r < context ? 1.0f : 0.0f;
    }
  }

  // ---- states and chunks

  void add_keys(std::int64_t t) {
    gemm(wide_, values_wide_, kBlock, keys_ + t * wide_, 1, wide_, values_ + t * values_wide_,
         values_wide_, state_, values_wide_, true);
  }
  void add_values(std::int64_t t) {
    gemm(values_wide_, wide_, kBlock, values_ + t * values_wide_, 1, values_wide_,
         keys_ + t * wide_, wide_, state_t_, wide_, true);
  }
  void keep_lower(float* square) const {
    for (std::int64_t i = 0; i < kBlock; ++i) {
      const std::int64_t end = args.mask == MaskKind::strict ? i : i + 1;
      for (std::int64_t j = 0; j < kBlock; j += kLanes) {
        store(square + i * kBlock + j,
              select(inside({0, end}, j), load(square + i * kBlock + j), Vec{}));
      }
    }
  }
  /// <f(q_i), f(k_j)> of a chunk, where i sees j.
  void score_chunk() {
    gemm(kBlock, kBlock, features_, q_, wide_, 1, keys_t_, kBlock, scores_, kBlock, false);
    keep_lower(scores_);
  }
  void slope_chunk() {
    gemm(kBlock, kBlock, size + 1, dy_, values_wide_, 1, values_t_, kBlock, slopes_, kBlock, false);
    keep_lower(slopes_);
  }

  template <class T>
  void write_rows(std::int64_t h, std::int64_t first) {
    for (std::int64_t i = 0; i < kBlock && first + i < context; ++i) {
      const float* y = y_ + i * values_wide_;
      const float total = y[size], factor = total > 0 ? 1.0f / total : 0.0f;
      args.stats[(sequence * args.heads + h) * context + first + i] = total;
      T* out =
          static_cast<T*>(args.y.data) + ((sequence * context + first + i) * args.heads + h) * size;
      for_vectors(size, [&](std::int64_t c, std::int64_t n) {
        store_upto(out + c, load(y + c) * factor, n);
      });
    }
  }

  // ---- backward

  /// dy' = (dy, -<dy, y>) / sum of a chunk.
  template <class T>
  void read_gradients(std::int64_t h, std::int64_t first) {
    clear(dy_, kBlock * values_wide_);
    for (std::int64_t i = 0; i < kBlock && first + i < context; ++i) {
      const std::int64_t row = ((sequence * context + first + i) * args.heads + h) * size;
      const T* dy = static_cast<const T*>(args.dy.data) + row;
      const T* y = static_cast<const T*>(args.y.data) + row;
      const float total = args.stats[(sequence * args.heads + h) * context + first + i];
      const float factor = total > 0 ? 1.0f / total : 0.0f;
      Vec delta{};
      float* out = dy_ + i * values_wide_;
      for_vectors(size, [&](std::int64_t c, std::int64_t n) {
        const Vec d = load_upto(dy + c, n);
        delta += d * load_upto(y + c, n);
        store_upto(out + c, d * factor, n);
      });
      out[size] = -sum(delta) * factor;
    }
  }

  /// Gradients of mapped rows to those of qkv.
  template <class T>
  void unmap(std::int64_t column, std::int64_t first, float* mapped) {
    if (args.kind != AttentionKind::performer) {
      scatter<T>(*this, d_features_, mapped, column, first, kBlock, 1.0f, true);
      return;
    }
    gather(static_cast<const T*>(args.qkv.data), qkv_cols(), column, first, kBlock, true, true,
           raw_);
    for (std::int64_t i = 0; i < kBlock * wide_; i += kLanes) {
      store(d_features_ + i, load(d_features_ + i) * load(mapped + i));
    }
    for (std::int64_t r = 0; r < kBlock; ++r) {
      Vec total{};
      for (std::int64_t m = 0; m < wide_; m += kLanes) total += load(d_features_ + r * wide_ + m);
      const float factor = -args.scale * sum(total);
      for (std::int64_t c = 0; c < stride; c += kLanes) {
        store(raw_ + r * stride + c, load(raw_ + r * stride + c) * factor);
      }
    }
    gemm(kBlock, stride, features_, d_features_, wide_, 1, directions_, stride, raw_, stride, true);
    scatter<T>(*this, raw_, nullptr, column, first, kBlock, 1.0f, true);
  }

  template <class T>
  void backward_queries() {
    clear(state_t_, wide_ * values_wide_);
    if (!masked()) {
      for (std::int64_t t = 0; t < context; t += kBlock) add_values(t);
    }
    for (std::int64_t t = 0; t < context; t += kBlock) {
      if (masked()) transpose_block(values_ + t * values_wide_, values_wide_, values_t_);
      for (std::int64_t h = first_head(); h < first_head() + group(); ++h) {
        map_queries<T>(h, t);
        read_gradients<T>(h, t);
        gemm(kBlock, wide_, size + 1, dy_, values_wide_, 1, state_t_, wide_, d_features_, wide_,
             false);
        if (masked()) {
          slope_chunk();
          gemm(kBlock, wide_, kBlock, slopes_, kBlock, 1, keys_ + t * wide_, wide_, d_features_,
               wide_, true);
        }
        unmap<T>(h * size, t, q_);
      }
      if (masked()) add_values(t);
    }
  }

  /// R += f(q) dy'^T, and transposed.
  void add_queries() {
    gemm(wide_, values_wide_, kBlock, q_, 1, wide_, dy_, values_wide_, state_, values_wide_, true);
    gemm(values_wide_, wide_, kBlock, dy_, 1, values_wide_, q_, wide_, state_t_, wide_, true);
  }

  template <class T>
  void backward_keys() {
    clear(state_, wide_ * values_wide_);
    clear(state_t_, wide_ * values_wide_);
    for (std::int64_t t = 0; !masked() && t < context; t += kBlock) {
      for (std::int64_t h = first_head(); h < first_head() + group(); ++h) {
        map_queries<T>(h, t);
        read_gradients<T>(h, t);
        add_queries();
      }
    }
    for (std::int64_t t = padded_context - kBlock; t >= 0; t -= kBlock) {
      const float* values = values_ + t * values_wide_;
      float *keys = keys_ + t * wide_, *d_values = y_;
      gemm(kBlock, wide_, size + 1, values, values_wide_, 1, state_t_, wide_, d_features_, wide_,
           false);
      gemm(kBlock, values_wide_, features_, keys, wide_, 1, state_, values_wide_, d_values,
           values_wide_, false);
      if (masked()) backward_chunk<T>(t, d_values);
      unmap<T>(key_column(), t, keys);
      write_values<T>(t, d_values);
    }
  }

  /// What the queries of a chunk contribute to its keys and values; then adds them to the states.
  template <class T>
  void backward_chunk(std::int64_t t, float* d_values) {
    transpose_block(keys_ + t * wide_, wide_, keys_t_);
    transpose_block(values_ + t * values_wide_, values_wide_, values_t_);
    for (std::int64_t h = first_head(); h < first_head() + group(); ++h) {
      map_queries<T>(h, t);
      read_gradients<T>(h, t);
      score_chunk();
      slope_chunk();
      gemm(kBlock, wide_, kBlock, slopes_, 1, kBlock, q_, wide_, d_features_, wide_, true);
      gemm(kBlock, values_wide_, kBlock, scores_, 1, kBlock, dy_, values_wide_, d_values,
           values_wide_, true);
      add_queries();
    }
  }

  template <class T>
  void write_values(std::int64_t first, const float* d_values) {
    for (std::int64_t r = 0; r < kBlock && first + r < context; ++r) {
      T* out = static_cast<T*>(args.d_qkv.data) + (sequence * context + first + r) * qkv_cols() +
               value_column();
      for_vectors(size, [&](std::int64_t c, std::int64_t n) {
        store_upto(out + c, load(d_values + r * values_wide_ + c), n);
      });
    }
  }

  std::int64_t features_, wide_, values_wide_;
  float* memory_;
  float *keys_, *values_, *keys_t_, *values_t_, *raw_, *q_, *dy_, *d_features_, *y_, *scores_,
      *slopes_, *state_, *state_t_, *directions_, *directions_t_;
};

}  // namespace

std::int64_t feature_scratch_floats(const AttentionArgs& args) {
  return FeatureTask::floats(args);
}

void feature_forward(const AttentionArgs& args, std::int64_t task, float* scratch) {
  FeatureTask own(args, task, scratch);
  with_type(args.qkv, [&](auto type) { own.forward<ElementOf<decltype(type)>>(); });
}

void feature_backward(const AttentionArgs& args, std::int64_t task, float* scratch) {
  FeatureTask own(args, task, scratch);
  with_type(args.qkv, [&](auto type) { own.backward<ElementOf<decltype(type)>>(); });
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
