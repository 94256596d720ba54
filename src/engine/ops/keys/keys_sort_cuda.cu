// KeyMap::sort: a thread block makes the matrix S of one sequence and key head (formulas:
// keys_sort.h); GEMMs apply it.
#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"
#include "engine/cuda/strided_gemm.h"
#include "engine/ops/keys/keys_sort_cuda.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kSteps = 2 * kSinkhornRounds;

struct SortArgs {
  KeyShape shape;
  const float* weight;
  Operand x;     // qkv
  float* means;  // [B G, blocks, K]
  float* steps;  // [B G, kSteps + 1, blocks, blocks]: Z before and after every step
  float* share;  // [B G, blocks, blocks]: S
  float* slope;  // same shape: the gradient of S, then of R

  __host__ __device__ std::int64_t blocks() const { return shape.context / shape.block; }
  __host__ __device__ std::int64_t square() const { return blocks() * blocks(); }
  __device__ std::int64_t key_place(std::int64_t b, std::int64_t g, std::int64_t t) const {
    return (b * shape.context + t) * shape.qkv_cols() + shape.key_column() + g * shape.head_size;
  }
};

/// Place of element e of line n: odd steps normalise rows, even ones columns.
__device__ std::int64_t place_in(int step, std::int64_t blocks, std::int64_t n, std::int64_t e) {
  return step % 2 == 1 ? n * blocks + e : e * blocks + n;
}

__global__ void sort_matrix_kernel(const SortArgs args) {
  const KeyShape& s = args.shape;
  const std::int64_t blocks = args.blocks(), size = s.head_size;
  const std::int64_t b = blockIdx.x / s.key_heads, g = blockIdx.x % s.key_heads;
  float* means = args.means + blockIdx.x * blocks * size;
  float* steps = args.steps + blockIdx.x * (kSteps + 1) * args.square();
  for (std::int64_t i = threadIdx.x; i < blocks * size; i += blockDim.x) {
    float sum = 0;
    for (std::int64_t t = 0; t < s.block; ++t) {
      sum += load<1>(args.x, args.key_place(b, g, i / size * s.block + t) + i % size).v[0];
    }
    means[i] = sum / static_cast<float>(s.block);
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < args.square(); i += blockDim.x) {
    const float* w = args.weight + (i % blocks * s.key_heads + g) * size;
    float sum = 0;
    for (std::int64_t c = 0; c < size; ++c) sum = fmaf(means[i / blocks * size + c], w[c], sum);
    steps[i] = sum;
  }
  for (int step = 1; step <= kSteps; ++step) {
    __syncthreads();
    const float* from = steps + (step - 1) * args.square();
    float* to = steps + step * args.square();
    for (std::int64_t n = threadIdx.x; n < blocks; n += blockDim.x) {
      float top = -INFINITY, sum = 0;
      for (std::int64_t e = 0; e < blocks; ++e)
        top = fmaxf(top, from[place_in(step, blocks, n, e)]);
      for (std::int64_t e = 0; e < blocks; ++e)
        sum += expf(from[place_in(step, blocks, n, e)] - top);
      const float total = top + logf(sum);
      for (std::int64_t e = 0; e < blocks; ++e) {
        to[place_in(step, blocks, n, e)] = from[place_in(step, blocks, n, e)] - total;
      }
    }
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < args.square(); i += blockDim.x) {
    args.share[blockIdx.x * args.square() + i] = expf(steps[kSteps * args.square() + i]);
  }
}

/// From the gradient of S to those of R, of the keys (added to dx) and of the weight (one part for
/// each sequence).
__global__ void sort_slopes_kernel(const SortArgs args, Operand dx, float* parts) {
  const KeyShape& s = args.shape;
  const std::int64_t blocks = args.blocks(), size = s.head_size;
  const std::int64_t b = blockIdx.x / s.key_heads, g = blockIdx.x % s.key_heads;
  const float* means = args.means + blockIdx.x * blocks * size;
  float* slope = args.slope + blockIdx.x * args.square();
  for (std::int64_t i = threadIdx.x; i < args.square(); i += blockDim.x) {
    slope[i] *= args.share[blockIdx.x * args.square() + i];
  }
  for (int step = kSteps; step > 0; --step) {
    __syncthreads();
    const float* made = args.steps + (blockIdx.x * (kSteps + 1) + step) * args.square();
    for (std::int64_t n = threadIdx.x; n < blocks; n += blockDim.x) {
      float sum = 0;
      for (std::int64_t e = 0; e < blocks; ++e) sum += slope[place_in(step, blocks, n, e)];
      for (std::int64_t e = 0; e < blocks; ++e) {
        const std::int64_t at = place_in(step, blocks, n, e);
        slope[at] -= expf(made[at]) * sum;
      }
    }
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < blocks * size; i += blockDim.x) {
    const std::int64_t block = i / size, c = i % size;
    float mean = 0, weight = 0;
    for (std::int64_t j = 0; j < blocks; ++j) {
      mean += slope[block * blocks + j] * args.weight[(j * s.key_heads + g) * size + c];
      weight += slope[j * blocks + block] * means[j * size + c];
    }
    parts[((b * blocks + block) * s.key_heads + g) * size + c] = weight;
    for (std::int64_t t = block * s.block; t < (block + 1) * s.block; ++t) {
      put<1>(dx, args.key_place(b, g, t) + c, {mean / static_cast<float>(s.block)}, true);
    }
  }
}

__global__ void copy_queries_kernel(const KeyShape s, Operand from, Operand to) {
  const std::int64_t item = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (item >= s.batch * s.context * s.key_column()) return;
  const std::int64_t at = item / s.key_column() * s.qkv_cols() + item % s.key_column();
  store<1>(to, at, load<1>(from, at));
}

/// Position t of every block as one matrix [blocks, K], for keys or values.
StridedMatrix positions_of(const KeyShape& s, Operand x, std::int64_t column) {
  return {.x = x,
          .offset = column,
          .row = s.block * s.qkv_cols(),
          .col = 1,
          .batch = {s.context * s.qkv_cols(), s.head_size, s.qkv_cols()}};
}

StridedMatrix matrix_of(const SortArgs& args, float* data) {
  return {.x = {data, false},
          .row = args.blocks(),
          .col = 1,
          .batch = {args.shape.key_heads * args.square(), args.square(), 0}};
}

/// to = S from, or S^T from, for keys and values.
void mix_blocks(const SortArgs& args, Operand from, Operand to, bool transposed,
                cudaStream_t stream) {
  const KeyShape& s = args.shape;
  const StridedMatrix share = matrix_of(args, args.share);
  for (const std::int64_t column : {s.key_column(), s.value_column()}) {
    strided_gemm({.a = transposed ? share.transposed() : share,
                  .b = positions_of(s, from, column),
                  .c = positions_of(s, to, column),
                  .rows = args.blocks(),
                  .cols = s.head_size,
                  .depth = args.blocks(),
                  .batch = {s.batch, s.key_heads, s.block}},
                 stream);
  }
}

/// The gradient of S: sums over positions, of keys and of values.
void slope_matrix(const SortArgs& args, Operand dy, cudaStream_t stream) {
  const KeyShape& s = args.shape;
  for (const std::int64_t column : {s.key_column(), s.value_column()}) {
    StridedMatrix d = positions_of(s, dy, column);
    StridedMatrix x = positions_of(s, args.x, column).transposed();
    for (StridedMatrix* matrix : {&d, &x}) {
      matrix->term = matrix->batch[2];
      matrix->batch[2] = 0;
    }
    strided_gemm({.a = d,
                  .b = x,
                  .c = matrix_of(args, args.slope),
                  .rows = args.blocks(),
                  .cols = args.blocks(),
                  .depth = s.head_size,
                  .batch = {s.batch, s.key_heads, 1},
                  .terms = s.block,
                  .accumulate = column != s.key_column()},
                 stream);
  }
}

std::int64_t sort_floats(const KeyShape& s) {
  const std::int64_t blocks = s.context / s.block;
  return s.batch * s.key_heads * blocks * (2 * s.head_size + (kSteps + 3) * blocks);
}

/// Returns the memory that follows, for parts of the weight's gradient.
float* place_in_scratch(SortArgs& args, void* scratch) {
  const KeyShape& s = args.shape;
  const std::int64_t heads = s.batch * s.key_heads;
  args.means = static_cast<float*>(scratch);
  args.steps = args.means + heads * args.blocks() * s.head_size;
  args.share = args.steps + heads * (kSteps + 1) * args.square();
  args.slope = args.share + heads * args.square();
  return args.slope + heads * args.square();
}

void make_matrix(const SortArgs& args, cudaStream_t stream) {
  const auto heads = static_cast<unsigned>(args.shape.batch * args.shape.key_heads);
  sort_matrix_kernel<<<heads, 256, 0, stream>>>(args);
  check_launch("sorted keys");
}

void copy_queries(const KeyShape& s, Operand from, Operand to, cudaStream_t stream) {
  const int grid = blocks_for(s.batch * s.context * s.key_column(), 256);
  copy_queries_kernel<<<grid, 256, 0, stream>>>(s, from, to);
  check_launch("sorted keys");
}

}  // namespace

BoundOp bind_sort(const MapKeys& op, const Context& context) {
  const SortArgs args{
      .shape = op.shape, .weight = context.floats(op.weight), .x = context.operand(op.qkv)};
  context.scratch->reserve(4 * sort_floats(op.shape));
  return [args, y = context.operand(op.y), scratch = context.scratch](cudaStream_t stream) {
    SortArgs own = args;
    place_in_scratch(own, scratch->data());
    make_matrix(own, stream);
    mix_blocks(own, own.x, y, false, stream);
    copy_queries(own.shape, own.x, y, stream);
  };
}

BoundOp bind_sort(const MapKeysBackward& op, const Context& context) {
  const SortArgs args{
      .shape = op.shape, .weight = context.floats(op.weight), .x = context.operand(op.qkv)};
  context.scratch->reserve(4 * sort_floats(op.shape));
  return [args, dy = context.operand(op.dy), dx = context.operand(op.d_qkv),
          d_weight = context.floats(op.d_weight), size = context.tensor(op.weight).size(),
          accumulate = op.d_weight_mode == GradMode::accumulate,
          scratch = context.scratch](cudaStream_t stream) {
    SortArgs own = args;
    float* parts = place_in_scratch(own, scratch->data());
    const auto heads = static_cast<unsigned>(own.shape.batch * own.shape.key_heads);
    make_matrix(own, stream);
    slope_matrix(own, dy, stream);
    mix_blocks(own, dy, dx, true, stream);
    copy_queries(own.shape, dy, dx, stream);
    sort_slopes_kernel<<<heads, 256, 0, stream>>>(own, dx, parts);
    check_launch("sorted keys, backward");
    if (d_weight == nullptr) return;
    reduce_parts(parts, own.shape.batch, size, {d_weight, accumulate}, 1.0f, stream);
  };
}

}  // namespace fathom::engine::cuda
