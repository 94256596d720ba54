// Attention by features in time linear in the context (engine/ops/attention/attention.h), as GEMMs.
//
// Queries and keys are mapped to f = [B, heads, T', F] and values get a column of ones, T' being T
// padded with zeros to chunks of 64. Under a mask the pairs of a chunk are taken one by one (A and
// D, [64, 64]) and all earlier chunks by their states S = sum f(k) v'^T; without one a single chunk
// has all positions. Backward runs the same over R = sum f(q) dy'^T of the later chunks.
#include <algorithm>

#include "core/error.h"
#include "engine/cuda/check.h"
#include "engine/cuda/device.cuh"
#include "engine/cuda/strided_gemm.h"
#include "engine/ops/attention/cuda/implementations.h"
#include "engine/ops/attention/cuda/rotated.cuh"

namespace fathom::engine::cuda {
namespace {

constexpr std::int64_t kChunk = 64;
constexpr int kWarps = 4;

struct FeatureSizes {
  std::int64_t batch, context, padded, heads, key_heads, size, features, group, chunks, length;
  bool masked;

  explicit FeatureSizes(const AttentionShape& s)
      : batch(s.batch),
        context(s.context),
        padded((s.context + kChunk - 1) / kChunk * kChunk),
        heads(s.heads),
        key_heads(s.key_heads),
        size(s.head_size),
        features(s.feature_size()),
        group(s.heads / s.key_heads),
        chunks(s.mask == MaskKind::bidirectional ? 1 : padded / kChunk),
        length(padded / chunks),
        masked(s.mask != MaskKind::bidirectional) {}
  constexpr std::int64_t rows(std::int64_t of_heads) const { return batch * of_heads * padded; }
  constexpr std::int64_t wide() const { return size + 1; }
};

/// What a warp needs to map one row.
struct MapRow {
  FeatureSizes sizes;
  AttentionKind kind;
  float scale;
  const float2* rotations;  // null: not rotary
  const float* directions;  // [K, F]

  /// (sequence, head, t) of a row of [B, heads, T', *].
  struct Place {
    std::int64_t b, h, t;
  };
  __device__ Place place(std::int64_t row, std::int64_t heads) const {
    return {row / sizes.padded / heads, row / sizes.padded % heads, row % sizes.padded};
  }
  __device__ std::int64_t in_qkv(const Place& p, std::int64_t column) const {
    const std::int64_t cols = (sizes.heads + 2 * sizes.key_heads) * sizes.size;
    return (p.b * sizes.context + p.t) * cols + column + p.h * sizes.size;
  }
  /// <sqrt(scale) w_m, x> for a rotated row x.
  __device__ float along(const float* x, std::int64_t m) const {
    float sum = 0;
    for (int c = 0; c < sizes.size; ++c) sum = fmaf(directions[c * sizes.features + m], x[c], sum);
    return sqrtf(scale) * sum;
  }
};

/// Mapped rows of queries or keys, a warp for each. Random features of keys stay logarithms.
template <class Value>
__global__ void feature_map_kernel(const MapRow map, const Value* qkv, std::int64_t heads,
                                   std::int64_t column, bool keys, float* out) {
  extern __shared__ float memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, size = map.sizes.size;
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + warp;
  if (row >= map.sizes.rows(heads)) return;
  const auto place = map.place(row, heads);
  float* f = out + row * map.sizes.features;
  if (place.t >= map.sizes.context) {
    for (std::int64_t m = lane; m < map.sizes.features; m += 32) f[m] = 0;
    return;
  }
  float* x = memory + warp * size;
  float square = 0;
  for (int c = lane; c < size; c += 32) {
    x[c] = rotated(map.rotations, qkv + map.in_qkv(place, column), size, place.t, c);
    square = fmaf(x[c], x[c], square);
  }
  __syncwarp();
  if (map.kind == AttentionKind::linear) {
    for (int c = lane; c < size; c += 32) f[c] = x[c] > 0 ? x[c] + 1 : expf(x[c]);
    return;
  }
  const float half = 0.5f * map.scale * warp_sum(square);
  float top = -INFINITY;
  for (std::int64_t m = lane; m < map.sizes.features; m += 32) {
    f[m] = map.along(x, m) - half;
    top = fmaxf(top, f[m]);
  }
  if (keys) return;
  top = warp_max(top);  // a factor of the whole row cancels
  for (std::int64_t m = lane; m < map.sizes.features; m += 32) f[m] = expf(f[m] - top);
}

/// Logarithms of the keys of one head to features, relative to the largest: that cancels too.
__global__ void key_exp_kernel(const FeatureSizes s, float* keys) {
  __shared__ float shared[32];
  float* own = keys + blockIdx.x * s.padded * s.features;
  const std::int64_t count = s.context * s.features;
  float top = -INFINITY;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) top = fmaxf(top, own[i]);
  top = warp_max(top);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = top;
  __syncthreads();
  for (int w = 0; w < static_cast<int>(blockDim.x / 32); ++w) top = fmaxf(top, shared[w]);
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) own[i] = expf(own[i] - top);
}

/// [B, G, T', K + 1]: values and a one; zeros behind T.
template <class Value>
__global__ void widen_values_kernel(const MapRow map, const Value* qkv, float* out) {
  const FeatureSizes& s = map.sizes;
  const std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (item >= s.rows(s.key_heads) * s.wide()) return;
  const auto place = map.place(item / s.wide(), s.key_heads);
  const std::int64_t c = item % s.wide();
  float v = 0;
  if (place.t < s.context) {
    v = c == s.size ? 1.0f : value(qkv, map.in_qkv(place, (s.heads + s.key_heads) * s.size) + c);
  }
  out[item] = v;
}

/// Exclusive sums over the chunks of [B, G, chunks, state], from the first or from the last.
__global__ void scan_states_kernel(float* states, std::int64_t heads, std::int64_t chunks,
                                   std::int64_t state, bool backwards) {
  const std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (item >= heads * state) return;
  float* own = states + item / state * chunks * state + item % state;
  float sum = 0;
  for (std::int64_t i = 0; i < chunks; ++i) {
    float& place = own[(backwards ? chunks - 1 - i : i) * state];
    const float mine = place;
    place = sum;
    sum += mine;
  }
}

template <class Value>
__global__ void divide_kernel(const FeatureSizes s, const float* wide, Value* y, float* stats) {
  const std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (item >= s.batch * s.context * s.heads * s.size) return;
  const std::int64_t c = item % s.size, h = item / s.size % s.heads;
  const std::int64_t t = item / s.size / s.heads % s.context,
                     b = item / s.size / s.heads / s.context;
  const float* row = wide + ((b * s.heads + h) * s.padded + t) * s.wide();
  const float total = row[s.size];
  put(y, item, total > 0 ? row[c] / total : 0.0f);
  if (c == 0) stats[(b * s.heads + h) * s.context + t] = total;
}

/// dy' = (dy, -<dy, y>) / sum, a warp for each row.
template <class Value>
__global__ void widen_gradients_kernel(const MapRow map, const Value* dy, const Value* y,
                                       const float* stats, float* out) {
  const FeatureSizes& s = map.sizes;
  const int lane = threadIdx.x % 32;
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= s.rows(s.heads)) return;
  const auto place = map.place(row, s.heads);
  float* to = out + row * s.wide();
  const bool inside = place.t < s.context;
  const std::int64_t at = ((place.b * s.context + place.t) * s.heads + place.h) * s.size;
  const float total = inside ? stats[(place.b * s.heads + place.h) * s.context + place.t] : 0.0f;
  const float factor = total > 0 ? 1 / total : 0.0f;
  float delta = 0;
  for (std::int64_t c = lane; c < s.size; c += 32) {
    const float d = inside ? value(dy, at + c) : 0.0f;
    if (inside) delta = fmaf(d, value(y, at + c), delta);
    to[c] = d * factor;
  }
  delta = warp_sum(delta);
  if (lane == 0) to[s.size] = -delta * factor;
}

/// d_qkv of queries or keys from the gradients df of mapped rows f, a warp for each.
template <class Value>
__global__ void feature_map_back_kernel(const MapRow map, const Value* qkv, std::int64_t heads,
                                        std::int64_t column, const float* f, const float* df,
                                        Value* d_qkv) {
  extern __shared__ float memory[];
  const FeatureSizes& s = map.sizes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, size = s.size;
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + warp;
  if (row >= s.rows(heads)) return;
  const auto place = map.place(row, heads);
  if (place.t >= s.context) return;
  f += row * s.features;
  df += row * s.features;
  const std::int64_t at = map.in_qkv(place, column);
  float* dx = memory + warp * size;
  float total = 0;
  if (map.kind == AttentionKind::performer) {
    for (std::int64_t m = lane; m < s.features; m += 32) total = fmaf(df[m], f[m], total);
    total = warp_sum(total);
  }
  for (int c = lane; c < size; c += 32) {
    if (map.kind == AttentionKind::linear) {
      dx[c] = df[c] * fminf(f[c], 1.0f);  // f = elu + 1: the slope is f below 1
      continue;
    }
    float sum = 0;
    for (std::int64_t m = 0; m < s.features; ++m) {
      sum = fmaf(df[m] * f[m], map.directions[c * s.features + m], sum);
    }
    const float x = rotated(map.rotations, qkv + at, size, place.t, c);
    dx[c] = sqrtf(map.scale) * sum - map.scale * total * x;
  }
  __syncwarp();
  for (int c = lane; c < size; c += 32) {
    put(d_qkv, at + c, rotated_back(map.rotations, dx, size, place.t, c));
  }
}

template <class Value>
__global__ void write_values_kernel(const MapRow map, const float* dv, Value* d_qkv) {
  const FeatureSizes& s = map.sizes;
  const std::int64_t item = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (item >= s.rows(s.key_heads) * s.size) return;
  const auto place = map.place(item / s.size, s.key_heads);
  if (place.t >= s.context) return;
  put(d_qkv, map.in_qkv(place, (s.heads + s.key_heads) * s.size) + item % s.size, dv[item]);
}

// ---- memory and matrices

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
  /// Overwrites the states by those of the queries.
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
           Triangle triangle = Triangle::whole, bool accumulate = false) const {
    strided_gemm({.a = a,
                  .b = b,
                  .c = c,
                  .rows = rows,
                  .cols = cols,
                  .depth = depth,
                  .batch = {s_.batch, heads, s_.chunks},
                  .triangle = triangle,
                  .accumulate = accumulate},
                 stream_);
  }
  void add(const StridedMatrix& a, const StridedMatrix& b, const StridedMatrix& c,
           std::int64_t rows, std::int64_t cols, std::int64_t depth, std::int64_t heads) const {
    run(a, b, c, rows, cols, depth, heads, Triangle::whole, true);
  }
  /// For every key head the sum over its query heads, whose matrices a and b are.
  void sum_group(StridedMatrix a, StridedMatrix b, const StridedMatrix& c, std::int64_t rows,
                 std::int64_t cols, std::int64_t depth, bool accumulate) const {
    for (StridedMatrix* matrix : {&a, &b}) {
      matrix->term = matrix->batch[1];
      matrix->batch[1] *= s_.group;
    }
    strided_gemm({.a = a,
                  .b = b,
                  .c = c,
                  .rows = rows,
                  .cols = cols,
                  .depth = depth,
                  .batch = {s_.batch, s_.key_heads, s_.chunks},
                  .terms = s_.group,
                  .accumulate = accumulate},
                 stream_);
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
void forward(const AttentionConfig& config, const Value* qkv, Value* y, float* stats, void* scratch,
             cudaStream_t stream) {
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
void backward(const AttentionConfig& config, const Value* dy, const Value* qkv, const Value* y,
              const float* stats, Value* d_qkv, void* scratch, cudaStream_t stream) {
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
    return forward(config, static_cast<const float*>(qkv), static_cast<float*>(y), stats, scratch,
                   stream);
  }
  using Half = __nv_bfloat16;
  forward(config, static_cast<const Half*>(qkv), static_cast<Half*>(y), stats, scratch, stream);
}

void feature_backward(const AttentionConfig& config, const void* dy, const void* qkv, const void* y,
                      const float* stats, void* d_qkv, void* scratch, cudaStream_t stream) {
  if (!config.bf16) {
    return backward(config, static_cast<const float*>(dy), static_cast<const float*>(qkv),
                    static_cast<const float*>(y), stats, static_cast<float*>(d_qkv), scratch,
                    stream);
  }
  using Half = __nv_bfloat16;
  backward(config, static_cast<const Half*>(dy), static_cast<const Half*>(qkv),
           static_cast<const Half*>(y), stats, static_cast<Half*>(d_qkv), scratch, stream);
}

}  // namespace fathom::engine::cuda
