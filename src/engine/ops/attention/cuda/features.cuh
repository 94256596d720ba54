// The kernels of features.cu, which launches them: maps of queries and keys and back, values and
// gradients with an extra column, sums over chunks.
#pragma once

#include "engine/cuda/device.cuh"
#include "engine/ops/attention/cuda/attention_kernels.h"
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

/// Mapped rows of queries or keys, a warp for each. Random features of keys are left as logarithms.
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

/// Turns the logarithms of one head's keys into features, relative to the largest: it cancels too.
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

/// [B, G, T', K + 1]: values and a one; zeros beyond T.
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

}  // namespace
}  // namespace fathom::engine::cuda
