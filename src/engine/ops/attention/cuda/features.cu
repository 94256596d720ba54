// Attention by features in time linear in the context (engine/ops/attention/attention.h), as GEMMs.
//
// Queries and keys are mapped to f = [B, heads, T', F] and values get a column of ones, T' being T
// padded with zeros to chunks of 64. Under a mask the pairs of a chunk are computed directly (A and
// D, [64, 64]) and all earlier chunks through their states S = sum f(k) v'^T; without one a single
// chunk has all positions. Backward does the same with R = sum f(q) dy'^T of the later chunks.
#include <algorithm>

#include "core/error.h"
#include "engine/cuda/check.h"
#include "engine/cuda/strided_gemm.h"
#include "engine/ops/attention/cuda/features.cuh"
#include "engine/ops/attention/cuda/implementations.h"

namespace fathom::engine::cuda {
namespace {

struct FeatureMemory {
  float2* rotations;
  float *q, *k, *v, *states, *pairs, *slopes, *y, *dy, *dq, *dk, *dv;
  std::size_t bytes = 0;

  FeatureMemory(const AttentionShape& shape, void* scratch)
      : base_(static_cast<unsigned char*>(scratch)) {
    const FeatureSizes s(shape);
    rotations =
        reinterpret_cast<float2*>(cut(shape.rotary_base > 0 ? shape.context * shape.head_size : 0));
    const std::int64_t square = s.masked ? s.batch * s.heads * s.padded * kChunk : 0;
    q = cut(s.rows(s.heads) * s.features);
    k = cut(s.rows(s.key_heads) * s.features);
    v = cut(s.rows(s.key_heads) * s.wide());
    states = cut(s.batch * s.key_heads * s.chunks * s.features * s.wide());
    pairs = cut(square);
    slopes = cut(square);
    y = cut(s.rows(s.heads) * s.wide());
    dy = y;  // forward has the one, backward the other
    dq = cut(s.rows(s.heads) * s.features);
    dk = cut(s.rows(s.key_heads) * s.features);
    dv = cut(s.rows(s.key_heads) * s.size);
  }

 private:
  float* cut(std::int64_t floats) {
    auto* place = base_ == nullptr ? nullptr : reinterpret_cast<float*>(base_ + bytes);
    bytes += aligned(static_cast<std::size_t>(floats) * 4);
    return place;
  }
  unsigned char* base_;
};

/// The GEMMs of both directions, over chunks of tensors [B, heads, T', columns].
class FeatureGemms {
 public:
  FeatureGemms(const AttentionShape& shape, const FeatureMemory& memory, cudaStream_t stream)
      : s_(shape), m_(memory), stream_(stream) {
    if (shape.mask == MaskKind::causal) triangle_ = Triangle::lower;
    if (shape.mask == MaskKind::strict) triangle_ = Triangle::strictly_lower;
  }

  void sum_keys() const {
    run(keys(m_.k, s_.features).transposed(), keys(m_.v, s_.wide()), states(), s_.features,
        s_.wide(), s_.length, s_.key_heads);
    if (s_.masked) scan(false);
  }
  void read_states() const {
    const StridedMatrix y = queries(m_.y, s_.wide());
    run(queries(m_.q, s_.features), shared(states()), y, s_.length, s_.wide(), s_.features,
        s_.heads);
    if (!s_.masked) return;
    make_pairs();
    add(squares(m_.pairs), shared(keys(m_.v, s_.wide())), y, kChunk, s_.wide(), kChunk, s_.heads);
  }
  void make_pairs() const {
    run(queries(m_.q, s_.features), shared(keys(m_.k, s_.features)).transposed(), squares(m_.pairs),
        kChunk, kChunk, s_.features, s_.heads, triangle_);
  }
  void backward_queries() const {
    const StridedMatrix dy = queries(m_.dy, s_.wide()), dq = queries(m_.dq, s_.features);
    run(dy, shared(states()).transposed(), dq, s_.length, s_.features, s_.wide(), s_.heads);
    if (!s_.masked) return;
    run(dy, shared(keys(m_.v, s_.wide())).transposed(), squares(m_.slopes), kChunk, kChunk,
        s_.wide(), s_.heads, triangle_);
    add(squares(m_.slopes), shared(keys(m_.k, s_.features)), dq, kChunk, s_.features, kChunk,
        s_.heads);
  }
  /// Overwrites the states with those of the queries.
  void sum_queries() const {
    sum_group(queries(m_.q, s_.features).transposed(), queries(m_.dy, s_.wide()), states(),
              s_.features, s_.wide(), s_.length, false);
    if (s_.masked) scan(true);
  }
  void backward_keys() const {
    const StridedMatrix dk = keys(m_.dk, s_.features), dv = keys(m_.dv, s_.size);
    run(keys(m_.v, s_.wide()), states().transposed(), dk, s_.length, s_.features, s_.wide(),
        s_.key_heads);
    run(keys(m_.k, s_.features), states(), dv, s_.length, s_.size, s_.features, s_.key_heads);
    if (!s_.masked) return;
    sum_group(squares(m_.slopes).transposed(), queries(m_.q, s_.features), dk, kChunk, s_.features,
              kChunk, true);
    make_pairs();
    sum_group(squares(m_.pairs).transposed(), queries(m_.dy, s_.wide()), dv, kChunk, s_.size,
              kChunk, true);
  }

 private:
  StridedMatrix chunks_of(float* data, std::int64_t heads, std::int64_t columns) const {
    return {.x = {data, false},
            .row = columns,
            .col = 1,
            .batch = {heads * s_.padded * columns, s_.padded * columns, s_.length * columns}};
  }
  StridedMatrix queries(float* data, std::int64_t columns) const {
    return chunks_of(data, s_.heads, columns);
  }
  StridedMatrix keys(float* data, std::int64_t columns) const {
    return chunks_of(data, s_.key_heads, columns);
  }
  StridedMatrix squares(float* data) const { return chunks_of(data, s_.heads, kChunk); }
  StridedMatrix states() const {
    const std::int64_t state = s_.features * s_.wide();
    return {.x = {m_.states, false},
            .row = s_.wide(),
            .col = 1,
            .batch = {s_.key_heads * s_.chunks * state, s_.chunks * state, state}};
  }
  /// A matrix of key heads for the query heads that share them.
  StridedMatrix shared(StridedMatrix matrix) const {
    matrix.shared = s_.group;
    return matrix;
  }

  void run(const StridedMatrix& a, const StridedMatrix& b, const StridedMatrix& c,
           std::int64_t rows, std::int64_t cols, std::int64_t depth, std::int64_t heads,
           Triangle triangle = Triangle::whole, bool accumulate = false,
           std::int64_t terms = 1) const {
    strided_gemm({.a = a,
                  .b = b,
                  .c = c,
                  .rows = rows,
                  .cols = cols,
                  .depth = depth,
                  .batch = {s_.batch, heads, s_.chunks},
                  .terms = terms,
                  .triangle = triangle,
                  .accumulate = accumulate},
                 stream_);
  }
  void add(const StridedMatrix& a, const StridedMatrix& b, const StridedMatrix& c,
           std::int64_t rows, std::int64_t cols, std::int64_t depth, std::int64_t heads) const {
    run(a, b, c, rows, cols, depth, heads, Triangle::whole, true);
  }
  /// For every key head the sum over its query heads, to which the matrices a and b belong.
  void sum_group(StridedMatrix a, StridedMatrix b, const StridedMatrix& c, std::int64_t rows,
                 std::int64_t cols, std::int64_t depth, bool accumulate) const {
    for (StridedMatrix* matrix : {&a, &b}) {
      matrix->term = matrix->batch[1];
      matrix->batch[1] *= s_.group;
    }
    run(a, b, c, rows, cols, depth, s_.key_heads, Triangle::whole, accumulate, s_.group);
  }
  void scan(bool backwards) const {
    const std::int64_t heads = s_.batch * s_.key_heads, state = s_.features * s_.wide();
    scan_states_kernel<<<blocks_for(heads * state, 256), 256, 0, stream_>>>(
        m_.states, heads, s_.chunks, state, backwards);
    check_launch("states of attention");
  }

  FeatureSizes s_;
  const FeatureMemory& m_;
  cudaStream_t stream_;
  Triangle triangle_ = Triangle::whole;
};

template <class Value>
MapRow map_inputs(const AttentionConfig& config, const FeatureMemory& memory, const Value* qkv,
                  cudaStream_t stream) {
  const AttentionShape& shape = config.shape;
  if (shape.kind == AttentionKind::performer && config.directions == nullptr) {
    throw InternalError("attention: the directions of features are not on the device");
  }
  if (shape.rotary_base > 0) launch_rotary_table(shape, memory.rotations, stream);
  const MapRow map{FeatureSizes(shape), shape.kind, shape.scale,
                   shape.rotary_base > 0 ? memory.rotations : nullptr, config.directions};
  const FeatureSizes& s = map.sizes;
  const auto bytes = static_cast<unsigned>(kWarps * s.size * 4);
  feature_map_kernel<<<blocks_for(s.rows(s.heads), kWarps), 32 * kWarps, bytes, stream>>>(
      map, qkv, s.heads, 0, false, memory.q);
  feature_map_kernel<<<blocks_for(s.rows(s.key_heads), kWarps), 32 * kWarps, bytes, stream>>>(
      map, qkv, s.key_heads, s.heads * s.size, true, memory.k);
  if (shape.kind == AttentionKind::performer) {
    const auto heads = static_cast<unsigned>(s.batch * s.key_heads);
    key_exp_kernel<<<heads, 256, 0, stream>>>(s, memory.k);
  }
  widen_values_kernel<<<blocks_for(s.rows(s.key_heads) * s.wide(), 256), 256, 0, stream>>>(
      map, qkv, memory.v);
  check_launch("features of attention");
  return map;
}

template <class Value>
void launch_feature_forward(const AttentionConfig& config, const Value* qkv, Value* y, float* stats,
                            void* scratch, cudaStream_t stream) {
  const FeatureMemory memory(config.shape, scratch);
  const FeatureSizes s = map_inputs(config, memory, qkv, stream).sizes;
  const FeatureGemms gemms(config.shape, memory, stream);
  gemms.sum_keys();
  gemms.read_states();
  divide_kernel<<<blocks_for(s.batch * s.context * s.heads * s.size, 256), 256, 0, stream>>>(
      s, memory.y, y, stats);
  check_launch("attention by features");
}

template <class Value>
void launch_feature_backward(const AttentionConfig& config, const Value* dy, const Value* qkv,
                             const Value* y, const float* stats, Value* d_qkv, void* scratch,
                             cudaStream_t stream) {
  const FeatureMemory memory(config.shape, scratch);
  const MapRow map = map_inputs(config, memory, qkv, stream);
  const FeatureSizes& s = map.sizes;
  widen_gradients_kernel<<<blocks_for(s.rows(s.heads), kWarps), 32 * kWarps, 0, stream>>>(
      map, dy, y, stats, memory.dy);
  const FeatureGemms gemms(config.shape, memory, stream);
  gemms.sum_keys();
  gemms.backward_queries();
  gemms.sum_queries();
  gemms.backward_keys();
  const auto bytes = static_cast<unsigned>(kWarps * s.size * 4);
  feature_map_back_kernel<<<blocks_for(s.rows(s.heads), kWarps), 32 * kWarps, bytes, stream>>>(
      map, qkv, s.heads, 0, memory.q, memory.dq, d_qkv);
  feature_map_back_kernel<<<blocks_for(s.rows(s.key_heads), kWarps), 32 * kWarps, bytes, stream>>>(
      map, qkv, s.key_heads, s.heads * s.size, memory.k, memory.dk, d_qkv);
  write_values_kernel<<<blocks_for(s.rows(s.key_heads) * s.size, 256), 256, 0, stream>>>(
      map, memory.dv, d_qkv);
  check_launch("attention by features, backward");
}

}  // namespace

std::size_t feature_scratch_bytes(const AttentionConfig& config) {
  return FeatureMemory(config.shape, nullptr).bytes;
}

void feature_forward(const AttentionConfig& config, const void* qkv, void* y, float* stats,
                     void* scratch, cudaStream_t stream) {
  if (!config.bf16) {
    return launch_feature_forward(config, static_cast<const float*>(qkv), static_cast<float*>(y),
                                  stats, scratch, stream);
  }
  using Half = __nv_bfloat16;
  launch_feature_forward(config, static_cast<const Half*>(qkv), static_cast<Half*>(y), stats,
                         scratch, stream);
}

void feature_backward(const AttentionConfig& config, const void* dy, const void* qkv, const void* y,
                      const float* stats, void* d_qkv, void* scratch, cudaStream_t stream) {
  if (!config.bf16) {
    return launch_feature_backward(config, static_cast<const float*>(dy),
                                   static_cast<const float*>(qkv), static_cast<const float*>(y),
                                   stats, static_cast<float*>(d_qkv), scratch, stream);
  }
  using Half = __nv_bfloat16;
  launch_feature_backward(config, static_cast<const Half*>(dy), static_cast<const Half*>(qkv),
                          static_cast<const Half*>(y), stats, static_cast<Half*>(d_qkv), scratch,
                          stream);
}

}  // namespace fathom::engine::cuda
