// Attention in f32 for every kind, mask, window and head size up to 256, without tensor cores.
//
// qkv is first mapped to f32 as the weights see it (turned by rotary positions, f = elu + 1 for
// linear attention; skipped where that changes nothing). Blocks of 16 x 16 threads then work on
// tiles of TS rows in shared memory, a thread on the TS/16 x TS/16 scores of rows ty + 16 r and
// columns tx + 16 c, and afterwards on columns tx + 16 c of the same rows of the sums:
//   forward  a block for TS queries, over key tiles (softmax: running maximum and sum);
//   dq       the same with ds instead of a;  dkv  a block for TS keys, over heads and query tiles.
// Gradients of mapped values are mapped back at the end. Every sum has a fixed order.
#include <cuda_bf16.h>

#include <algorithm>

#include "core/error.h"
#include "engine/cuda/attention_kernels.h"

namespace fathom::engine::cuda {
namespace {

struct GenericArgs {
  const float* x;  // [B T, (H + 2 G) K], mapped
  float* d;        // same shape: gradients of x
  const void *dy, *y_in;
  void* y;
  float *stats, *delta;  // [B H, T]
  int context, heads, key_heads, head_size, stride;
  AttentionKind kind;
  int above, below;
  float scale;

  __device__ bool allows(int query, int key) const {
    return query < context && key < context && key <= query + above && key >= query - below;
  }
};

__device__ float value(const float* x, std::int64_t at) {
  return x[at];
}
__device__ float value(const __nv_bfloat16* x, std::int64_t at) {
  return __bfloat162float(x[at]);
}
__device__ void put(float* x, std::int64_t at, float v) {
  x[at] = v;
}
__device__ void put(__nv_bfloat16* x, std::int64_t at, float v) {
  x[at] = __float2bfloat16_rn(v);
}

template <int TS, int KMAX>
struct Tile {
  static constexpr int kStride = KMAX + 1, kFloats = TS * kStride;
};

/// Rows row0.. of one head into a tile; zeros beyond T and K.
template <int TS, int KMAX, class Value>
__device__ void load(float* tile, const Value* from, std::int64_t stride, int row0,
                     const GenericArgs& args) {
  for (int i = threadIdx.x; i < TS * KMAX; i += 256) {
    const int row = i / KMAX, column = i % KMAX;
    const bool inside = row0 + row < args.context && column < args.head_size;
    tile[row * Tile<TS, KMAX>::kStride + column] =
        inside ? value(from, (row0 + row) * stride + column) : 0;
  }
}

/// s[r][c] = <a_{ty + 16 r}, b_{tx + 16 c}>
template <int R, int STRIDE>
__device__ void dots(float (&s)[R][R], const float* a, const float* b, int size, int ty, int tx) {
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < R; ++c) s[r][c] = 0;
  }
  for (int k = 0; k < size; ++k) {
    float left[R], right[R];
#pragma unroll
    for (int r = 0; r < R; ++r) left[r] = a[(ty + 16 * r) * STRIDE + k];
#pragma unroll
    for (int c = 0; c < R; ++c) right[c] = b[(tx + 16 * c) * STRIDE + k];
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int c = 0; c < R; ++c) s[r][c] = fmaf(left[r], right[c], s[r][c]);
    }
  }
}

/// out[r][c] += sum_j p[ty + 16 r][j] b[j][tx + 16 c]
template <int TS, int C, int STRIDE>
__device__ void add_rows(float (&out)[TS / 16][C], const float* p, const float* b, int ty, int tx) {
  for (int j = 0; j < TS; ++j) {
    float right[C];
#pragma unroll
    for (int c = 0; c < C; ++c) right[c] = b[j * STRIDE + tx + 16 * c];
#pragma unroll
    for (int r = 0; r < TS / 16; ++r) {
      const float left = p[(ty + 16 * r) * (TS + 1) + j];
#pragma unroll
      for (int c = 0; c < C; ++c) out[r][c] = fmaf(left, right[c], out[r][c]);
    }
  }
}

__device__ float row_max(float x) {  // over the 16 threads of a row
  for (int step = 8; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}
__device__ float row_sum(float x) {
  for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

template <int TS, int KMAX, class Value>
__global__ void __launch_bounds__(256) generic_forward_kernel(const GenericArgs args) {
  constexpr int R = TS / 16, C = KMAX / 16, kStride = Tile<TS, KMAX>::kStride;
  extern __shared__ float memory[];
  float *q = memory, *k = q + Tile<TS, KMAX>::kFloats, *v = k + Tile<TS, KMAX>::kFloats;
  float* p = v + Tile<TS, KMAX>::kFloats;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int tiles = (args.context + TS - 1) / TS;
  const int sequence = blockIdx.x / tiles, q0 = (tiles - 1 - blockIdx.x % tiles) * TS;
  const int b = sequence / args.heads, h = sequence % args.heads;
  const int g = h / (args.heads / args.key_heads);
  const float* x = args.x + static_cast<std::int64_t>(b) * args.context * args.stride;
  load<TS, KMAX>(q, x + h * args.head_size, args.stride, q0, args);

  float out[R][C] = {}, top[R], sum[R] = {};
  for (int r = 0; r < R; ++r) top[r] = -INFINITY;
  const int end = min(args.context, q0 + TS + args.above);
  for (int k0 = max(0, q0 - args.below) / TS * TS; k0 < end; k0 += TS) {
    __syncthreads();
    load<TS, KMAX>(k, x + (args.heads + g) * args.head_size, args.stride, k0, args);
    load<TS, KMAX>(v, x + (args.heads + args.key_heads + g) * args.head_size, args.stride, k0,
                   args);
    __syncthreads();
    float s[R][R];
    dots<R, kStride>(s, q, k, args.head_size, ty, tx);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float best = top[r];
      if (args.kind == AttentionKind::softmax) {
        for (int c = 0; c < R; ++c) {
          s[r][c] =
              args.allows(q0 + ty + 16 * r, k0 + tx + 16 * c) ? s[r][c] * args.scale : -INFINITY;
          best = fmaxf(best, s[r][c]);
        }
        best = row_max(best);
        const float base = best == -INFINITY ? 0 : best;
        const float shrink = expf(top[r] - base);
        top[r] = best;
        sum[r] *= shrink;
#pragma unroll
        for (int c = 0; c < C; ++c) out[r][c] *= shrink;
#pragma unroll
        for (int c = 0; c < R; ++c) s[r][c] = expf(s[r][c] - base);
      } else {
        const float factor = args.kind == AttentionKind::none ? args.scale : 1;
        for (int c = 0; c < R; ++c) {
          s[r][c] = args.allows(q0 + ty + 16 * r, k0 + tx + 16 * c) ? s[r][c] * factor : 0;
        }
      }
#pragma unroll
      for (int c = 0; c < R; ++c) {
        sum[r] += s[r][c];
        p[(ty + 16 * r) * (TS + 1) + tx + 16 * c] = s[r][c];
      }
    }
    __syncwarp();  // a row of p belongs to 16 threads of one warp
    add_rows<TS, C, kStride>(out, p, v, ty, tx);
  }

  for (int r = 0; r < R; ++r) {
    const int i = q0 + ty + 16 * r;
    const float total = row_sum(sum[r]);
    if (i >= args.context) continue;
    float stat = 0, factor = 1;
    if (args.kind != AttentionKind::none) factor = total > 0 ? 1 / total : 0;
    if (args.kind == AttentionKind::softmax && total > 0) stat = top[r] + logf(total);
    if (args.kind == AttentionKind::linear) stat = total;
    if (tx == 0) args.stats[static_cast<std::int64_t>(sequence) * args.context + i] = stat;
    const std::int64_t row =
        ((static_cast<std::int64_t>(b) * args.context + i) * args.heads + h) * args.head_size;
    for (int c = 0; c < C; ++c) {
      if (tx + 16 * c < args.head_size) {
        put(static_cast<Value*>(args.y), row + tx + 16 * c, out[r][c] * factor);
      }
    }
  }
}

/// delta[b h, t] = <dy, y>, a warp for each.
template <class Value>
__global__ void generic_delta_kernel(const GenericArgs args, std::int64_t rows) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (row >= rows) return;  // row = (b T + t) H + h
  const int lane = threadIdx.x % 32;
  const auto* dy = static_cast<const Value*>(args.dy) + row * args.head_size;
  const auto* y = static_cast<const Value*>(args.y_in) + row * args.head_size;
  float sum = 0;
  for (int c = lane; c < args.head_size; c += 32) sum = fmaf(value(dy, c), value(y, c), sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  const std::int64_t h = row % args.heads, token = row / args.heads;
  const std::int64_t b = token / args.context, t = token % args.context;
  if (lane == 0) args.delta[(b * args.heads + h) * args.context + t] = sum;
}

/// The weight a of a score and the gradient ds of the unscaled product, from dp = dy . v.
__device__ void weigh(const GenericArgs& args, bool allowed, float product, float dp, float stat,
                      float delta, float& a, float& ds) {
  a = ds = 0;
  if (!allowed) return;
  if (args.kind == AttentionKind::softmax) {
    a = expf(product * args.scale - stat);
    ds = args.scale * a * (dp - delta);
  } else if (args.kind == AttentionKind::linear) {
    a = product / stat;
    ds = (dp - delta) / stat;
  } else {
    a = product * args.scale;
    ds = args.scale * dp;
  }
}

template <int TS, int KMAX, class Value>
__global__ void __launch_bounds__(256) generic_dq_kernel(const GenericArgs args) {
  constexpr int R = TS / 16, C = KMAX / 16, kStride = Tile<TS, KMAX>::kStride;
  constexpr int kFloats = Tile<TS, KMAX>::kFloats;
  extern __shared__ float memory[];
  float *q = memory, *dy = q + kFloats, *k = dy + kFloats, *v = k + kFloats, *p = v + kFloats;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int tiles = (args.context + TS - 1) / TS;
  const int sequence = blockIdx.x / tiles, q0 = (tiles - 1 - blockIdx.x % tiles) * TS;
  const int b = sequence / args.heads, h = sequence % args.heads;
  const int g = h / (args.heads / args.key_heads);
  const std::int64_t first_row = static_cast<std::int64_t>(b) * args.context;
  const float* x = args.x + first_row * args.stride;
  const std::int64_t y_stride = args.heads * args.head_size;
  load<TS, KMAX>(q, x + h * args.head_size, args.stride, q0, args);
  load<TS, KMAX>(dy, static_cast<const Value*>(args.dy) + first_row * y_stride + h * args.head_size,
                 y_stride, q0, args);
  float stat[R], delta[R], out[R][C] = {};
  for (int r = 0; r < R; ++r) {
    const int i = min(q0 + ty + 16 * r, args.context - 1);
    stat[r] = args.stats[static_cast<std::int64_t>(sequence) * args.context + i];
    delta[r] = args.delta[static_cast<std::int64_t>(sequence) * args.context + i];
  }
  const int end = min(args.context, q0 + TS + args.above);
  for (int k0 = max(0, q0 - args.below) / TS * TS; k0 < end; k0 += TS) {
    __syncthreads();
    load<TS, KMAX>(k, x + (args.heads + g) * args.head_size, args.stride, k0, args);
    load<TS, KMAX>(v, x + (args.heads + args.key_heads + g) * args.head_size, args.stride, k0,
                   args);
    __syncthreads();
    float s[R][R], dp[R][R];
    dots<R, kStride>(s, q, k, args.head_size, ty, tx);
    dots<R, kStride>(dp, dy, v, args.head_size, ty, tx);
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int c = 0; c < R; ++c) {
        const bool allowed = args.allows(q0 + ty + 16 * r, k0 + tx + 16 * c);
        float a, ds;
        weigh(args, allowed, s[r][c], dp[r][c], stat[r], delta[r], a, ds);
        p[(ty + 16 * r) * (TS + 1) + tx + 16 * c] = ds;
      }
    }
    __syncwarp();
    add_rows<TS, C, kStride>(out, p, k, ty, tx);
  }
  for (int r = 0; r < R; ++r) {
    const int i = q0 + ty + 16 * r;
    for (int c = 0; c < C; ++c) {
      const int column = tx + 16 * c;
      if (i < args.context && column < args.head_size) {
        args.d[(first_row + i) * args.stride + h * args.head_size + column] = out[r][c];
      }
    }
  }
}

template <int TS, int KMAX, class Value>
__global__ void __launch_bounds__(256) generic_dkv_kernel(const GenericArgs args) {
  constexpr int R = TS / 16, C = KMAX / 16, kStride = Tile<TS, KMAX>::kStride;
  constexpr int kFloats = Tile<TS, KMAX>::kFloats;
  extern __shared__ float memory[];
  float *k = memory, *v = k + kFloats, *q = v + kFloats, *dy = q + kFloats;
  float *weights = dy + kFloats, *slopes = weights + TS * (TS + 1);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int tiles = (args.context + TS - 1) / TS;
  const int sequence = blockIdx.x / tiles, k0 = blockIdx.x % tiles * TS;
  const int b = sequence / args.key_heads, g = sequence % args.key_heads;
  const int group = args.heads / args.key_heads;
  const std::int64_t first_row = static_cast<std::int64_t>(b) * args.context;
  const float* x = args.x + first_row * args.stride;
  const std::int64_t y_stride = args.heads * args.head_size;
  const int k_column = (args.heads + g) * args.head_size;
  const int v_column = (args.heads + args.key_heads + g) * args.head_size;
  load<TS, KMAX>(k, x + k_column, args.stride, k0, args);
  load<TS, KMAX>(v, x + v_column, args.stride, k0, args);

  float dk[R][C] = {}, dv[R][C] = {};
  const int first = max(0, k0 - args.above) / TS * TS;
  const int end = min(args.context, k0 + TS + args.below);
  for (int h = g * group; h < (g + 1) * group; ++h) {
    const std::int64_t numbers = (static_cast<std::int64_t>(b) * args.heads + h) * args.context;
    for (int i0 = first; i0 < end; i0 += TS) {
      __syncthreads();
      load<TS, KMAX>(q, x + h * args.head_size, args.stride, i0, args);
      load<TS, KMAX>(dy,
                     static_cast<const Value*>(args.dy) + first_row * y_stride + h * args.head_size,
                     y_stride, i0, args);
      __syncthreads();
      float s[R][R], dp[R][R];
      dots<R, kStride>(s, k, q, args.head_size, ty, tx);
      dots<R, kStride>(dp, v, dy, args.head_size, ty, tx);
#pragma unroll
      for (int c = 0; c < R; ++c) {
        const int i = i0 + tx + 16 * c;
        const float stat = args.stats[numbers + min(i, args.context - 1)];
        const float delta = args.delta[numbers + min(i, args.context - 1)];
#pragma unroll
        for (int r = 0; r < R; ++r) {
          float a, ds;
          weigh(args, args.allows(i, k0 + ty + 16 * r), s[r][c], dp[r][c], stat, delta, a, ds);
          weights[(ty + 16 * r) * (TS + 1) + tx + 16 * c] = a;
          slopes[(ty + 16 * r) * (TS + 1) + tx + 16 * c] = ds;
        }
      }
      __syncwarp();
      add_rows<TS, C, kStride>(dv, weights, dy, ty, tx);
      add_rows<TS, C, kStride>(dk, slopes, q, ty, tx);
    }
  }
  for (int r = 0; r < R; ++r) {
    const int j = k0 + ty + 16 * r;
    for (int c = 0; c < C; ++c) {
      const int column = tx + 16 * c;
      if (j >= args.context || column >= args.head_size) continue;
      float* row = args.d + (first_row + j) * args.stride + column;
      row[k_column] = dk[r][c];
      row[v_column] = dv[r][c];
    }
  }
}

__global__ void rotary_table_kernel(float2* turns, int context, int half, double base) {
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= context * half) return;
  const double angle = (item / half) * pow(base, -2.0 * (item % half) / (2.0 * half));
  double sine, cosine;
  sincos(angle, &sine, &cosine);
  turns[item] = {static_cast<float>(cosine), static_cast<float>(sine)};
}

/// One pair or element of qkv and how the weights see it.
struct MapArgs {
  const float2* turns;  // null: not rotary
  bool linear;
  std::int64_t items;  // B T (H + 2 G) K
  int context, heads, key_heads, head_size;

  /// The turned value at column c of a head (before the feature map).
  template <class Value>
  __device__ float turned(const Value* head, std::int64_t t, int c) const {
    const float own = value(head, c);
    if (turns == nullptr) return own;
    const int half = head_size / 2;
    const float2 turn = turns[t * half + c % half];
    const float other = value(head, (c + half) % head_size);
    return c < half ? own * turn.x - other * turn.y : other * turn.y + own * turn.x;
  }
};

template <class Value>
__global__ void map_kernel(const MapArgs args, const Value* qkv, float* x) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= args.items) return;
  const std::int64_t cols = (args.heads + 2 * args.key_heads) * args.head_size;
  const std::int64_t column = item % cols, row = item / cols;
  if (column >= (args.heads + args.key_heads) * args.head_size) {
    x[item] = value(qkv, item);
    return;
  }
  const int c = static_cast<int>(column % args.head_size);
  const float seen = args.turned(qkv + item - c, row % args.context, c);
  x[item] = !args.linear ? seen : seen > 0 ? seen + 1 : expf(seen);
}

/// d_qkv from the gradients d of mapped values.
template <class Value>
__global__ void map_back_kernel(const MapArgs args, const Value* qkv, const float* d,
                                Value* d_qkv) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= args.items) return;
  const std::int64_t cols = (args.heads + 2 * args.key_heads) * args.head_size;
  const std::int64_t column = item % cols, t = item / cols % args.context;
  if (column >= (args.heads + args.key_heads) * args.head_size) {
    put(d_qkv, item, d[item]);
    return;
  }
  const int c = static_cast<int>(column % args.head_size), half = args.head_size / 2;
  const std::int64_t head = item - c;
  const auto slope = [&](int at) {
    if (!args.linear) return 1.0f;
    const float seen = args.turned(qkv + head, t, at);
    return seen > 0 ? 1.0f : expf(seen);
  };
  float out = d[item] * slope(c);
  if (args.turns != nullptr) {
    const float2 turn = args.turns[t * half + c % half];
    const int partner = (c + half) % args.head_size;
    const float other = d[head + partner] * slope(partner);
    out = c < half ? out * turn.x + other * turn.y : out * turn.x - other * turn.y;
  }
  put(d_qkv, item, out);
}

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

bool needs_map(const AttentionShape& s, bool bf16) {
  return bf16 || s.rotary_base > 0 || s.kind == AttentionKind::linear;
}

struct GenericScratch {
  float2* turns;
  float *delta, *x, *d;
  std::size_t bytes;
};

GenericScratch cut(const AttentionShape& s, bool bf16, void* scratch) {
  const auto rows = static_cast<std::size_t>(s.batch * s.context);
  const std::size_t table =
      s.rotary_base > 0 ? aligned(static_cast<std::size_t>(s.context * s.head_size) * 4) : 0;
  const std::size_t numbers = aligned(rows * static_cast<std::size_t>(s.heads) * 4);
  const std::size_t copy =
      needs_map(s, bf16) ? aligned(rows * static_cast<std::size_t>(s.qkv_cols()) * 4) : 0;
  auto* base = static_cast<unsigned char*>(scratch);
  GenericScratch out{};
  out.bytes = table + numbers + 2 * copy;
  if (base == nullptr) return out;
  out.turns = reinterpret_cast<float2*>(base);
  out.delta = reinterpret_cast<float*>(base + table);
  out.x = reinterpret_cast<float*>(base + table + numbers);
  out.d = reinterpret_cast<float*>(base + table + numbers + copy);
  return out;
}

void check_launch() {
  if (cudaGetLastError() != cudaSuccess) {
    throw DeviceError("attention: a generic kernel could not be launched");
  }
}

MapArgs map_args(const AttentionShape& s, const GenericScratch& scratch) {
  return {s.rotary_base > 0 ? scratch.turns : nullptr,
          s.kind == AttentionKind::linear,
          s.batch * s.context * s.qkv_cols(),
          static_cast<int>(s.context),
          static_cast<int>(s.heads),
          static_cast<int>(s.key_heads),
          static_cast<int>(s.head_size)};
}

unsigned blocks_of(std::int64_t items, int threads) {
  return static_cast<unsigned>((items + threads - 1) / threads);
}

GenericArgs common_args(const AttentionShape& s, const GenericScratch& scratch) {
  if (s.head_size > 256) throw ConfigError("attention: head sizes above 256 are not served");
  GenericArgs args{};
  const AttentionBand band = attention_band(s);
  args.context = static_cast<int>(s.context);
  args.heads = static_cast<int>(s.heads);
  args.key_heads = static_cast<int>(s.key_heads);
  args.head_size = static_cast<int>(s.head_size);
  args.stride = static_cast<int>(s.qkv_cols());
  args.kind = s.kind;
  args.above = band.above;
  args.below = band.below;
  args.scale = s.scale;
  args.delta = scratch.delta;
  return args;
}

template <class Value>
const float* mapped(const AttentionShape& s, const Value* qkv, const GenericScratch& scratch,
                    cudaStream_t stream) {
  if (s.rotary_base > 0) launch_rotary_table(s, scratch.turns, stream);
  if constexpr (std::is_same_v<Value, float>) {
    if (!needs_map(s, false)) return qkv;
  }
  const MapArgs args = map_args(s, scratch);
  map_kernel<<<blocks_of(args.items, 256), 256, 0, stream>>>(args, qkv, scratch.x);
  check_launch();
  return scratch.x;
}

using Kernel = void (*)(const GenericArgs);

void launch(Kernel kernel, const GenericArgs& args, std::int64_t sequences, int tile, int floats,
            cudaStream_t stream) {
  const int bytes = floats * 4;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const auto tiles = (args.context + tile - 1) / tile;
  kernel<<<static_cast<unsigned>(sequences * tiles), 256, bytes, stream>>>(args);
  check_launch();
}

template <int TS, int KMAX, class Value>
void launch_forward(const AttentionShape& s, const GenericArgs& args, cudaStream_t stream) {
  launch(generic_forward_kernel<TS, KMAX, Value>, args, s.batch * s.heads, TS,
         3 * Tile<TS, KMAX>::kFloats + TS * (TS + 1), stream);
}

template <int TS, int KMAX, class Value>
void launch_backward(const AttentionShape& s, const GenericArgs& args, cudaStream_t stream) {
  const int floats = 4 * Tile<TS, KMAX>::kFloats;
  launch(generic_dq_kernel<TS, KMAX, Value>, args, s.batch * s.heads, TS, floats + TS * (TS + 1),
         stream);
  launch(generic_dkv_kernel<TS, KMAX, Value>, args, s.batch * s.key_heads, TS,
         floats + 2 * TS * (TS + 1), stream);
}

template <class Value>
void forward(const AttentionShape& s, const Value* qkv, Value* y, float* stats, void* scratch,
             cudaStream_t stream) {
  const GenericScratch parts = cut(s, !std::is_same_v<Value, float>, scratch);
  GenericArgs args = common_args(s, parts);
  args.x = mapped(s, qkv, parts, stream);
  args.y = y;
  args.stats = stats;
  if (s.head_size <= 64) return launch_forward<64, 64, Value>(s, args, stream);
  if (s.head_size <= 128) return launch_forward<64, 128, Value>(s, args, stream);
  launch_forward<32, 256, Value>(s, args, stream);
}

template <class Value>
void backward(const AttentionShape& s, const Value* dy, const Value* qkv, const Value* y,
              const float* stats, Value* d_qkv, void* scratch, cudaStream_t stream) {
  constexpr bool kBf16 = !std::is_same_v<Value, float>;
  const GenericScratch parts = cut(s, kBf16, scratch);
  GenericArgs args = common_args(s, parts);
  args.x = mapped(s, qkv, parts, stream);
  args.dy = dy;
  args.y_in = y;
  args.stats = const_cast<float*>(stats);  // only the forward kernel writes through it
  args.d = parts.d;
  if constexpr (!kBf16) {
    if (!needs_map(s, false)) args.d = d_qkv;
  }
  const std::int64_t rows = s.batch * s.context * s.heads;
  generic_delta_kernel<Value><<<blocks_of(rows, 8), 256, 0, stream>>>(args, rows);
  check_launch();
  if (s.head_size <= 64) {
    launch_backward<64, 64, Value>(s, args, stream);
  } else if (s.head_size <= 128) {
    launch_backward<64, 128, Value>(s, args, stream);
  } else {
    launch_backward<32, 256, Value>(s, args, stream);
  }
  if (!needs_map(s, kBf16)) return;
  const MapArgs map = map_args(s, parts);
  map_back_kernel<<<blocks_of(map.items, 256), 256, 0, stream>>>(map, qkv, parts.d, d_qkv);
  check_launch();
}

}  // namespace

void launch_rotary_table(const AttentionShape& s, float2* turns, cudaStream_t stream) {
  const int context = static_cast<int>(s.context), half = static_cast<int>(s.head_size / 2);
  rotary_table_kernel<<<blocks_of(static_cast<std::int64_t>(context) * half, 128), 128, 0,
                        stream>>>(turns, context, half, static_cast<double>(s.rotary_base));
  check_launch();
}

std::size_t generic_scratch_bytes(const AttentionShape& s, bool bf16) {
  return cut(s, bf16, nullptr).bytes;
}

void generic_forward(const AttentionShape& s, const void* qkv, void* y, float* stats, bool bf16,
                     void* scratch, cudaStream_t stream) {
  if (!bf16) {
    return forward(s, static_cast<const float*>(qkv), static_cast<float*>(y), stats, scratch,
                   stream);
  }
  forward(s, static_cast<const __nv_bfloat16*>(qkv), static_cast<__nv_bfloat16*>(y), stats, scratch,
          stream);
}

void generic_backward(const AttentionShape& s, const void* dy, const void* qkv, const void* y,
                      const float* stats, void* d_qkv, bool bf16, void* scratch,
                      cudaStream_t stream) {
  if (!bf16) {
    return backward(s, static_cast<const float*>(dy), static_cast<const float*>(qkv),
                    static_cast<const float*>(y), stats, static_cast<float*>(d_qkv), scratch,
                    stream);
  }
  using Half = __nv_bfloat16;
  backward(s, static_cast<const Half*>(dy), static_cast<const Half*>(qkv),
           static_cast<const Half*>(y), stats, static_cast<Half*>(d_qkv), scratch, stream);
}

}  // namespace fathom::engine::cuda
