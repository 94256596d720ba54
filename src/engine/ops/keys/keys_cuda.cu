#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"
#include "engine/cuda/strided_gemm.h"
#include "engine/ops/keys/keys_sort_cuda.h"

namespace fathom::engine::cuda {
namespace {

struct KeyArgs {
  KeyShape shape;
  Operand x, y, dy, dx;
  const float* weight;
  std::int64_t projected;  // rows of a projection
};

__device__ float share_of(float weight) {
  return 1.0f / (1.0f + expf(-weight));
}

/// One thread per element. Projected columns are left to a GEMM; rows beyond its result are zero.
__global__ void map_keys_kernel(const KeyArgs args) {
  const KeyShape& s = args.shape;
  const std::int64_t cols = s.qkv_cols(), items = s.batch * s.context * cols;
  for (std::int64_t item = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; item < items;
       item += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t c = item % cols, t = item / cols % s.context;
    const bool key = c >= s.key_column() && c < s.value_column();
    float value = load<1>(args.x, item).v[0];
    if (s.map == KeyMap::smear && key && t > 0) {
      const float share = share_of(args.weight[(c - s.key_column()) / s.head_size]);
      value = share * value + (1.0f - share) * load<1>(args.x, item - cols).v[0];
    } else if (s.map == KeyMap::project && c >= s.key_column()) {
      if (t < args.projected) continue;
      value = 0;
    } else if (s.map == KeyMap::synthesise) {
      if (c < s.key_column()) value = fmaxf(value, 0.0f);
      if (key) value = args.weight[t * s.key_heads * s.head_size + c - s.key_column()];
    }
    store<1>(args.y, item, {value});
  }
}

__global__ void map_keys_backward_kernel(const KeyArgs args) {
  const KeyShape& s = args.shape;
  const std::int64_t cols = s.qkv_cols(), items = s.batch * s.context * cols;
  for (std::int64_t item = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; item < items;
       item += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t c = item % cols, t = item / cols % s.context;
    const bool key = c >= s.key_column() && c < s.value_column();
    if (s.map == KeyMap::project && c >= s.key_column()) continue;
    float value = load<1>(args.dy, item).v[0];
    if (s.map == KeyMap::smear && key) {
      const float share = share_of(args.weight[(c - s.key_column()) / s.head_size]);
      if (t > 0) value *= share;
      if (t + 1 < s.context) value += (1.0f - share) * load<1>(args.dy, item + cols).v[0];
    } else if (s.map == KeyMap::synthesise) {
      if (key || (c < s.key_column() && load<1>(args.x, item).v[0] <= 0)) value = 0;
    }
    store<1>(args.dx, item, {value});
  }
}

/// partial[b, g], a block for each.
__global__ void smear_weight_kernel(const KeyArgs args, float* partial) {
  __shared__ float shared[33];
  const KeyShape& s = args.shape;
  const std::int64_t b = blockIdx.x / s.key_heads, g = blockIdx.x % s.key_heads;
  const std::int64_t cols = s.qkv_cols(), first = b * s.context * cols + s.key_column();
  float total = 0;
  for (std::int64_t i = threadIdx.x; i < (s.context - 1) * s.head_size; i += blockDim.x) {
    const std::int64_t at =
        first + (1 + i / s.head_size) * cols + g * s.head_size + i % s.head_size;
    total +=
        load<1>(args.dy, at).v[0] * (load<1>(args.x, at).v[0] - load<1>(args.x, at - cols).v[0]);
  }
  const float share = share_of(args.weight[g]);
  total = block_sum(total, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = share * (1.0f - share) * total;
}

__global__ void synthesise_weight_kernel(const KeyArgs args, float* d_weight, bool accumulate) {
  const KeyShape& s = args.shape;
  const std::int64_t item = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  const std::int64_t wide = s.key_heads * s.head_size;
  if (item >= s.context * wide) return;
  const std::int64_t at = item / wide * s.qkv_cols() + s.key_column() + item % wide;
  float total = 0;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    total += load<1>(args.dy, b * s.context * s.qkv_cols() + at).v[0];
  }
  d_weight[item] = accumulate ? d_weight[item] + total : total;
}

/// The columns of keys and values of every sequence.
StridedMatrix key_columns(const KeyShape& s, Operand x) {
  return {.x = x,
          .offset = s.key_column(),
          .row = s.qkv_cols(),
          .col = 1,
          .batch = {s.context * s.qkv_cols(), 0, 0}};
}

StridedMatrix projection_of(const KeyArgs& args) {
  return {.x = {const_cast<float*>(args.weight), false}, .row = args.shape.context, .col = 1};
}

StridedGemm key_gemm(const KeyShape& s, const StridedMatrix& a, const StridedMatrix& b,
                     const StridedMatrix& c, std::int64_t rows, std::int64_t depth) {
  return {.a = a,
          .b = b,
          .c = c,
          .rows = rows,
          .cols = s.qkv_cols() - s.key_column(),
          .depth = depth,
          .batch = {s.batch, 1, 1}};
}

StridedGemm weight_gemm(const KeyArgs& args, float* d_weight, bool accumulate) {
  const KeyShape& s = args.shape;
  StridedMatrix dy = key_columns(s, args.dy), x = key_columns(s, args.x).transposed();
  for (StridedMatrix* m : {&dy, &x}) {
    m->term = m->batch[0];
    m->batch[0] = 0;
  }
  return {.a = dy,
          .b = x,
          .c = {.x = {d_weight, false}, .row = s.context, .col = 1},
          .rows = args.projected,
          .cols = s.context,
          .depth = s.qkv_cols() - s.key_column(),
          .terms = s.batch,
          .accumulate = accumulate};
}

}  // namespace

BoundOp bind(const MapKeys& op, const Context& context) {
  if (op.shape.map == KeyMap::sort) return bind_sort(op, context);
  const KeyArgs args{op.shape, context.operand(op.qkv),   context.operand(op.y),         {},
                     {},       context.floats(op.weight), context.tensor(op.weight).rows};
  return [args, gpu = context.gpu](cudaStream_t stream) {
    const KeyShape& s = args.shape;
    const int grid = blocks_for(s.batch * s.context * s.qkv_cols(), 256, gpu, 16);
    map_keys_kernel<<<grid, 256, 0, stream>>>(args);
    check_launch("keys");
    if (s.map != KeyMap::project) return;
    strided_gemm(key_gemm(s, projection_of(args), key_columns(s, args.x), key_columns(s, args.y),
                          args.projected, s.context),
                 stream);
  };
}

BoundOp bind(const MapKeysBackward& op, const Context& context) {
  if (op.shape.map == KeyMap::sort) return bind_sort(op, context);
  const KeyArgs args{op.shape,
                     context.operand(op.qkv),
                     {},
                     context.operand(op.dy),
                     context.operand(op.d_qkv),
                     context.floats(op.weight),
                     context.tensor(op.weight).rows};
  context.scratch->reserve(op.shape.batch * op.shape.key_heads * 4);
  return
      [args, gpu = context.gpu, scratch = context.scratch, d_weight = context.floats(op.d_weight),
       accumulate = op.d_weight_mode == GradMode::accumulate](cudaStream_t stream) {
        const KeyShape& s = args.shape;
        const int grid = blocks_for(s.batch * s.context * s.qkv_cols(), 256, gpu, 16);
        map_keys_backward_kernel<<<grid, 256, 0, stream>>>(args);
        check_launch("keys backward");
        if (s.map == KeyMap::project) {
          strided_gemm(key_gemm(s, projection_of(args).transposed(), key_columns(s, args.dy),
                                key_columns(s, args.dx), s.context, args.projected),
                       stream);
        }
        if (d_weight == nullptr) return;
        if (s.map == KeyMap::smear) {
          auto* partial = static_cast<float*>(scratch->data());
          const auto parts = static_cast<unsigned>(s.batch * s.key_heads);
          smear_weight_kernel<<<parts, 256, 0, stream>>>(args, partial);
          check_launch("keys backward");
          reduce_parts(partial, s.batch, s.key_heads, {d_weight, accumulate}, 1.0f, stream);
        } else if (s.map == KeyMap::project) {
          strided_gemm(weight_gemm(args, d_weight, accumulate), stream);
        } else {
          const int blocks = blocks_for(s.context * s.key_heads * s.head_size, 256);
          synthesise_weight_kernel<<<blocks, 256, 0, stream>>>(args, d_weight, accumulate);
          check_launch("keys backward");
        }
      };
}

}  // namespace fathom::engine::cuda
