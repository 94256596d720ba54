// Attention in f32 for every kind, mask, pattern and head size up to 256, without tensor cores.
//
// qkv is first mapped to f32 as the weights see it (rotated by rotary positions, f = elu + 1 for
// linear attention; skipped where that changes nothing). Blocks of 16 x 16 threads then work on
// tiles of TS rows in shared memory, a thread on the TS/16 x TS/16 scores of rows ty + 16 r and
// columns tx + 16 c, and afterwards on columns tx + 16 c of the same rows of the sums:
//   forward  a block for TS queries, over key tiles (softmax: running maximum and sum);
//   dq       the same with ds instead of a;  dkv  a block for TS keys, over heads and query tiles.
// Gradients of mapped values are mapped back at the end. Every sum has a fixed order.
#include <cuda_bf16.h>

#include <algorithm>

#include "core/error.h"
#include "engine/ops/attention/cuda/generic.cuh"
#include "engine/ops/attention/cuda/implementations.h"

namespace fathom::engine::cuda {
namespace {

__global__ void rotary_table_kernel(float2* rotations, int context, int half, double base) {
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= context * half) return;
  const double angle = (item / half) * pow(base, -2.0 * (item % half) / (2.0 * half));
  double sine, cosine;
  sincos(angle, &sine, &cosine);
  rotations[item] = {static_cast<float>(cosine), static_cast<float>(sine)};
}

/// One pair or element of qkv and how the weights see it.
struct MapArgs {
  const float2* rotations;  // null: not rotary
  bool linear;
  std::int64_t items;  // B T (H + 2 G) K
  int context, heads, key_heads, head_size;
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
  const float seen = rotated(args.rotations, qkv + item - c, args.head_size, row % args.context, c);
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
    const float seen = rotated(args.rotations, qkv + head, args.head_size, t, at);
    return seen > 0 ? 1.0f : expf(seen);
  };
  float out = d[item] * slope(c);
  if (args.rotations != nullptr) {
    const float2 rotation = args.rotations[t * half + c % half];
    const int partner = (c + half) % args.head_size;
    const float other = d[head + partner] * slope(partner);
    out = c < half ? out * rotation.x + other * rotation.y : out * rotation.x - other * rotation.y;
  }
  put(d_qkv, item, out);
}

bool needs_map(const AttentionShape& s, bool bf16) {
  return bf16 || s.rotary_base > 0 || s.kind == AttentionKind::linear;
}

struct GenericScratch {
  float2* rotations;
  float *delta, *means, *x, *d;
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
  out.bytes = table + 2 * numbers + 2 * copy;
  if (base == nullptr) return out;
  out.rotations = reinterpret_cast<float2*>(base);
  out.delta = reinterpret_cast<float*>(base + table);
  out.means = reinterpret_cast<float*>(base + table + numbers);
  out.x = reinterpret_cast<float*>(base + table + 2 * numbers);
  out.d = reinterpret_cast<float*>(base + table + 2 * numbers + copy);
  return out;
}

void check_launch() {
  if (cudaGetLastError() != cudaSuccess) {
    throw DeviceError("attention: a generic kernel could not be launched");
  }
}

MapArgs map_args(const AttentionShape& s, const GenericScratch& scratch) {
  return {s.rotary_base > 0 ? scratch.rotations : nullptr,
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

GenericArgs common_args(const AttentionConfig& config, const GenericScratch& scratch) {
  const AttentionShape& s = config.shape;
  if (s.has_pattern() && config.visible == nullptr) {
    throw InternalError("attention: the tables of the pattern are not on the device");
  }
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
  args.means = scratch.means;
  args.visible = config.visible;
  args.views = config.views;
  return args;
}

template <class Value>
const float* mapped(const AttentionShape& s, const Value* qkv, const GenericScratch& scratch,
                    cudaStream_t stream) {
  if (s.rotary_base > 0) launch_rotary_table(s, scratch.rotations, stream);
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

/// Floats of shared memory that the kernels need.
struct ForwardFloats {
  template <int TS, int KMAX>
  static constexpr int count() {
    return 3 * Tile<TS, KMAX>::kFloats + TS * (TS + 1);
  }
};
struct MomentFloats {
  template <int TS, int KMAX>
  static constexpr int count() {
    return 2 * Tile<TS, KMAX>::kFloats;
  }
};
struct DqFloats {
  template <int TS, int KMAX>
  static constexpr int count() {
    return 4 * Tile<TS, KMAX>::kFloats + TS * (TS + 1);
  }
};
struct DkvFloats {
  template <int TS, int KMAX>
  static constexpr int count() {
    return 4 * Tile<TS, KMAX>::kFloats + 2 * TS * (TS + 1);
  }
};

/// Calls body with the rows of a tile and the padded head size: 64 rows (32 for the largest heads)
/// where the Floats of such a tile fit in shared memory, else half as many.
template <class Floats, int KMAX, class Body>
void with_rows(const Gpu& gpu, const Body& body) {
  constexpr int kRows = KMAX <= 128 ? 64 : 32;
  constexpr int kBytes = Floats::template count<kRows, KMAX>() * 4;
  if constexpr (kBytes > kLeastSharedBytes) {
    if (kBytes > gpu.shared_bytes) return body.template operator()<kRows / 2, KMAX>();
  }
  body.template operator()<kRows, KMAX>();
}

template <class Floats, class Body>
void with_tile(const AttentionConfig& config, const Body& body) {
  if (config.shape.head_size <= 64) return with_rows<Floats, 64>(config.gpu, body);
  if (config.shape.head_size <= 128) return with_rows<Floats, 128>(config.gpu, body);
  with_rows<Floats, 256>(config.gpu, body);
}

template <class Value, bool VALUES>
void row_moments(const AttentionConfig& config, const GenericArgs& args, cudaStream_t stream) {
  if (config.shape.kind != AttentionKind::normalised) return;
  with_tile<MomentFloats>(config, [&]<int TS, int KMAX>() {
    launch(generic_moments_kernel<TS, KMAX, Value, VALUES>, args,
           config.shape.batch * config.shape.heads, TS, MomentFloats::count<TS, KMAX>(), stream);
  });
}

template <class Value>
void launch_generic_forward(const AttentionConfig& config, const Value* qkv, Value* y, float* stats,
                            void* scratch, cudaStream_t stream) {
  const AttentionShape& s = config.shape;
  const GenericScratch parts = cut(s, !std::is_same_v<Value, float>, scratch);
  GenericArgs args = common_args(config, parts);
  args.x = mapped(s, qkv, parts, stream);
  args.y = y;
  args.stats = stats;
  row_moments<Value, false>(config, args, stream);
  with_tile<ForwardFloats>(config, [&]<int TS, int KMAX>() {
    launch(generic_forward_kernel<TS, KMAX, Value>, args, s.batch * s.heads, TS,
           ForwardFloats::count<TS, KMAX>(), stream);
  });
}

template <class Value>
void launch_generic_backward(const AttentionConfig& config, const Value* dy, const Value* qkv,
                             const Value* y, const float* stats, Value* d_qkv, void* scratch,
                             cudaStream_t stream) {
  constexpr bool kBf16 = !std::is_same_v<Value, float>;
  const AttentionShape& s = config.shape;
  const GenericScratch parts = cut(s, kBf16, scratch);
  GenericArgs args = common_args(config, parts);
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
  row_moments<Value, true>(config, args, stream);
  with_tile<DkvFloats>(config, [&]<int TS, int KMAX>() {
    launch(generic_dq_kernel<TS, KMAX, Value>, args, s.batch * s.heads, TS,
           DqFloats::count<TS, KMAX>(), stream);
    launch(generic_dkv_kernel<TS, KMAX, Value>, args, s.batch * s.key_heads, TS,
           DkvFloats::count<TS, KMAX>(), stream);
  });
  if (!needs_map(s, kBf16)) return;
  const MapArgs map = map_args(s, parts);
  map_back_kernel<<<blocks_of(map.items, 256), 256, 0, stream>>>(map, qkv, parts.d, d_qkv);
  check_launch();
}

}  // namespace

void launch_rotary_table(const AttentionShape& s, float2* rotations, cudaStream_t stream) {
  const int context = static_cast<int>(s.context), half = static_cast<int>(s.head_size / 2);
  rotary_table_kernel<<<blocks_of(static_cast<std::int64_t>(context) * half, 128), 128, 0,
                        stream>>>(rotations, context, half, static_cast<double>(s.rotary_base));
  check_launch();
}

std::size_t generic_scratch_bytes(const AttentionConfig& config) {
  return cut(config.shape, config.bf16, nullptr).bytes;
}

void generic_forward(const AttentionConfig& config, const void* qkv, void* y, float* stats,
                     void* scratch, cudaStream_t stream) {
  if (!config.bf16) {
    return launch_generic_forward(config, static_cast<const float*>(qkv), static_cast<float*>(y),
                                  stats, scratch, stream);
  }
  launch_generic_forward(config, static_cast<const __nv_bfloat16*>(qkv),
                         static_cast<__nv_bfloat16*>(y), stats, scratch, stream);
}

void generic_backward(const AttentionConfig& config, const void* dy, const void* qkv, const void* y,
                      const float* stats, void* d_qkv, void* scratch, cudaStream_t stream) {
  if (!config.bf16) {
    return launch_generic_backward(config, static_cast<const float*>(dy),
                                   static_cast<const float*>(qkv), static_cast<const float*>(y),
                                   stats, static_cast<float*>(d_qkv), scratch, stream);
  }
  using Half = __nv_bfloat16;
  launch_generic_backward(config, static_cast<const Half*>(dy), static_cast<const Half*>(qkv),
                          static_cast<const Half*>(y), stats, static_cast<Half*>(d_qkv), scratch,
                          stream);
}

}  // namespace fathom::engine::cuda
