#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"

namespace fathom::engine::cuda {
namespace {

/// out (+)= a x + b y[i mod period]; y may be absent.
template <int V>
__global__ void combine_kernel(Operand x, Operand y, Operand out, float a, float b,
                               std::int64_t packs, std::int64_t period, bool accumulate) {
  for (std::int64_t p = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; p < packs;
       p += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t i = p * V;
    Pack<V> value = load<V>(x, i);
#pragma unroll
    for (int j = 0; j < V; ++j) value.v[j] *= a;
    if (y) {
      const Pack<V> other = load<V>(y, i % period);
#pragma unroll
      for (int j = 0; j < V; ++j) value.v[j] += b * other.v[j];
    }
    put<V>(out, i, value, accumulate);
  }
}

void combine(const Gpu& gpu, Operand x, Operand y, Operand out, float a, float b, std::int64_t size,
             std::int64_t period, bool accumulate, cudaStream_t stream) {
  const bool packed = size % 8 == 0 && period % 8 == 0;
  const std::int64_t packs = packed ? size / 8 : size;
  const int grid = blocks_for(packs, 256, gpu, 32);
  if (packed) {
    combine_kernel<8><<<grid, 256, 0, stream>>>(x, y, out, a, b, packs, period, accumulate);
  } else {
    combine_kernel<1><<<grid, 256, 0, stream>>>(x, y, out, a, b, packs, period, accumulate);
  }
  check_launch("residual");
}

/// sums[p, t, c] = sum over the rows n = t mod period of part p, for one pack of columns.
template <int V>
__global__ void period_sum_kernel(Operand x, float* sums, std::int64_t rows, std::int64_t width,
                                  std::int64_t period, std::int64_t rows_per_part) {
  const std::int64_t packs = width / V;
  const std::int64_t item = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (item >= period * packs) return;
  const std::int64_t t = item / packs, c = item % packs * V, part = blockIdx.y;
  const std::int64_t first = part * rows_per_part + t;
  const std::int64_t end = min(rows, (part + 1) * rows_per_part);
  Pack<V> sum{};
  for (std::int64_t n = first; n < end; n += period) {
    const Pack<V> value = load<V>(x, n * width + c);
#pragma unroll
    for (int j = 0; j < V; ++j) sum.v[j] += value.v[j];
  }
  store<V>(sums + (part * period + t) * width + c, sum);
}

/// Block: 32 columns; its rows of threads share the parts.
__global__ void reduce_parts_kernel(const float* partial, std::int64_t parts, std::int64_t width,
                                    float* sums, float factor, bool accumulate) {
  __shared__ float shared[32][33];
  const std::int64_t c = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (c < width) {
#pragma unroll 8
    for (std::int64_t p = threadIdx.y; p < parts; p += blockDim.y) sum += partial[p * width + c];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= width) return;
  for (int y = 1; y < blockDim.y; ++y) sum += shared[y][threadIdx.x];
  sum *= factor;
  sums[c] = accumulate ? sums[c] + sum : sum;
}

}  // namespace

void reduce_parts(const float* partial, std::int64_t parts, std::int64_t width,
                  const ColumnSums& sums, float factor, cudaStream_t stream) {
  const dim3 block(32, static_cast<unsigned>(std::min<std::int64_t>(32, parts)));
  reduce_parts_kernel<<<blocks_for(width, 32), block, 0, stream>>>(partial, parts, width, sums.to,
                                                                   factor, sums.accumulate);
  check_launch("reduction");
}

BoundOp bind_period_sum(const Context& context, std::function<Operand()> x, float* sums,
                        std::int64_t rows, std::int64_t width, std::int64_t period, float factor,
                        GradMode mode, std::int64_t offset) {
  const bool packed = width % 4 == 0;
  const std::int64_t items = period * width / (packed ? 4 : 1);
  const int blocks = blocks_for(items, 128);
  // Enough parts to fill the device, each of whole periods and at least 16 of them.
  const std::int64_t periods = (rows + period - 1) / period;
  const std::int64_t wanted = std::max<std::int64_t>(1, context.gpu.multiprocessors * 8 / blocks);
  const std::int64_t per_part =
      std::max<std::int64_t>(std::min<std::int64_t>(16, periods), (periods + wanted - 1) / wanted);
  const std::int64_t parts = (periods + per_part - 1) / per_part;
  context.scratch->reserve(offset + parts * period * width * 4);
  return [=, scratch = context.scratch,
          accumulate = mode == GradMode::accumulate](cudaStream_t stream) {
    auto* partial = reinterpret_cast<float*>(static_cast<char*>(scratch->data()) + offset);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(parts));
    if (packed) {
      period_sum_kernel<4>
          <<<grid, 128, 0, stream>>>(x(), partial, rows, width, period, per_part * period);
    } else {
      period_sum_kernel<1>
          <<<grid, 128, 0, stream>>>(x(), partial, rows, width, period, per_part * period);
    }
    reduce_parts(partial, parts, period * width, {sums, accumulate}, factor, stream);
  };
}

BoundOp bind(const Residual& op, const Context& context) {
  return [x = context.operand(op.x), branch = context.operand(op.branch), r = context.operand(op.r),
          a = op.stream_scale, b = op.branch_scale, size = context.tensor(op.r).size(),
          gpu = context.gpu](cudaStream_t stream) {
    combine(gpu, x, branch, r, a, b, size, size, false, stream);
  };
}

BoundOp bind(const ResidualBackward& op, const Context& context) {
  return [dr = context.operand(op.dr), dx = context.operand(op.dx),
          branch = context.operand(op.d_branch), op, size = context.tensor(op.dr).size(),
          gpu = context.gpu](cudaStream_t stream) {
    if (branch) {
      combine(gpu, dr, {}, branch, op.branch_scale, 0, size, size,
              op.d_branch_mode == GradMode::accumulate, stream);
    }
    if (dx) {
      combine(gpu, dr, {}, dx, op.stream_scale, 0, size, size, op.dx_mode == GradMode::accumulate,
              stream);
    }
  };
}

BoundOp bind(const AddPositions& op, const Context& context) {
  return [x = context.operand(op.x), positions = context.operand(op.positions),
          y = context.operand(op.y), size = context.tensor(op.y).size(),
          period = context.tensor(op.positions).size(), gpu = context.gpu](cudaStream_t stream) {
    combine(gpu, x, positions, y, 1, 1, size, period, false, stream);
  };
}

BoundOp bind(const AddPositionsBackward& op, const Context& context) {
  const Tensor& dy = context.tensor(op.dy);
  BoundOp positions;
  if (op.d_positions.exists()) {
    positions =
        bind_period_sum(context, context.operand(op.dy), context.floats(op.d_positions), dy.rows,
                        dy.cols, context.tensor(op.d_positions).rows, 1, op.d_positions_mode);
  }
  return [positions, d = context.operand(op.dy), dx = context.operand(op.dx), size = dy.size(),
          accumulate = op.dx_mode == GradMode::accumulate, gpu = context.gpu](cudaStream_t stream) {
    if (positions) positions(stream);
    if (dx && (dx.data != d.data || accumulate)) {
      combine(gpu, d, {}, dx, 1, 0, size, size, accumulate, stream);
    }
  };
}

}  // namespace fathom::engine::cuda
