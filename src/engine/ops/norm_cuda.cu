// A warp takes a row and keeps it in registers: lane l holds the packs of four at columns
// 4 (l + 32 k). Rows too wide or not of whole packs go to a block that reads them again instead.
#include <cuda_pipeline_primitives.h>

#include <optional>

#include "engine/cuda/cuda_ops.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kWarps = 8;  // of a block

struct Forward {
  Operand x, branch, r, y;
  const float* gain;
  const float* bias;
  float* stats;
  std::int64_t rows, width;
  float epsilon, stream_scale, branch_scale;
  bool rms;
};

struct Backward {
  Operand dy, incoming, r, dx, d_branch;
  Operand again;  // y, made again; or null
  const float* stats;
  const float* gain;
  const float* bias;  // only for y
  float* partial;     // [blocks, sums, width]: sums of dy h, of dy and of d_branch
  std::int64_t rows, width;
  float stream_scale, branch_scale;
  bool rms, accumulate_dx, accumulate_branch;
};

template <int N>
__global__ void __launch_bounds__(32 * kWarps) forward_kernel(Forward a) {
  const int lane = threadIdx.x % 32;
  const std::int64_t row = blockIdx.x * std::int64_t{kWarps} + threadIdx.x / 32;
  if (row >= a.rows) return;
  const std::int64_t base = row * a.width;
  Pack<4> r[N];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const std::int64_t c = 4 * (lane + 32 * k);
    r[k] = {};
    if (c >= a.width) continue;
    r[k] = load<4>(a.x, base + c);
    if (a.branch) {
      const Pack<4> branch = load<4>(a.branch, base + c);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        r[k].v[j] = a.stream_scale * r[k].v[j] + a.branch_scale * branch.v[j];
      }
      store<4>(a.r, base + c, r[k]);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) sum += r[k].v[j];
  }
  const float width = static_cast<float>(a.width);
  const float mean = a.rms ? 0 : warp_sum(sum) / width;
  float square = 0;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (4 * (lane + 32 * k) >= a.width) continue;
#pragma unroll
    for (int j = 0; j < 4; ++j) square += (r[k].v[j] - mean) * (r[k].v[j] - mean);
  }
  const float s = rsqrtf(warp_sum(square) / width + a.epsilon);
  if (lane == 0) *reinterpret_cast<float2*>(a.stats + 2 * row) = {mean, s};
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const std::int64_t c = 4 * (lane + 32 * k);
    if (c >= a.width) continue;
    const Pack<4> gain = load<4>(a.gain + c);
    Pack<4> bias{};
    if (a.bias != nullptr) bias = load<4>(a.bias + c);
#pragma unroll
    for (int j = 0; j < 4; ++j) r[k].v[j] = (r[k].v[j] - mean) * s * gain.v[j] + bias.v[j];
    store<4>(a.y, base + c, r[k]);
  }
}

constexpr int kAhead = 3;  // rows whose operands are on their way while one is in work

/// Where a thread's share of a row waits in shared memory: N packs each of r, dy and incoming. Only
/// this thread fetches and reads them, so that nobody else is waited for.
template <int N>
class Waiting {
 public:
  __device__ Waiting(const Backward& a, unsigned char* memory) : a_(a), memory_(memory) {}

  static __host__ __device__ int bytes(const Backward& a) {
    return (kAhead + 1) * N * 32 * kWarps * (size(a.r) + size(a.dy) + size(a.incoming));
  }
  template <class Column>
  __device__ void fetch(int turn, std::int64_t row, const Column& column) const {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int c = column(k);
      if (row >= a_.rows || c >= a_.width) continue;
      copy(a_.r, turn, k, 0, row * a_.width + c);
      copy(a_.dy, turn, k, size(a_.r), row * a_.width + c);
      if (a_.incoming) copy(a_.incoming, turn, k, size(a_.r) + size(a_.dy), row * a_.width + c);
    }
    __pipeline_commit();
  }
  __device__ Pack<4> r(int turn, int k) const {
    return load<4>(place(a_.r, turn, k, 0), 0);
  }
  __device__ Pack<4> dy(int turn, int k) const {
    return load<4>(place(a_.dy, turn, k, size(a_.r)), 0);
  }
  __device__ Pack<4> incoming(int turn, int k) const {
    return load<4>(place(a_.incoming, turn, k, size(a_.r) + size(a_.dy)), 0);
  }

 private:
  /// Of a pack.
  static __host__ __device__ int size(const Operand& operand) {
    return !operand ? 0 : operand.bf16 ? 8 : 16;
  }
  __device__ Operand place(const Operand& operand, int turn, int k, int before) const {
    const int all = size(a_.r) + size(a_.dy) + size(a_.incoming);
    const int at = ((turn & kAhead) * N + k) * all + before;
    return {memory_ + at * 32 * kWarps + threadIdx.x * size(operand), operand.bf16};
  }
  __device__ void copy(const Operand& from, int turn, int k, int before, std::int64_t i) const {
    void* to = place(from, turn, k, before).data;
    if (from.bf16) {
      __pipeline_memcpy_async(to, static_cast<const __nv_bfloat16*>(from.data) + i, 8);
    } else {
      __pipeline_memcpy_async(to, static_cast<const float*>(from.data) + i, 16);
    }
  }
  static_assert((kAhead & (kAhead + 1)) == 0);

  const Backward& a_;
  unsigned char* memory_;
};

/// The warps that share a row.
template <int W>
__device__ inline void meet(int row) {
  if constexpr (W == kWarps) {
    __syncthreads();
  } else {
    asm volatile("bar.sync %0, %1;" ::"r"(row + 1), "n"(32 * W) : "memory");
  }
}

template <int N>
constexpr int kResident = N == 1   ? 4
                          : N == 2 ? 3
                                   : 1;  // blocks of a multiprocessor, at least

/// W warps share a row, so that a lane holds few enough numbers for many warps to be in flight.
/// kSums quantities are summed over the rows: dy h, dy and, if asked for, d_branch.
template <int N, int W, int kSums>
__global__ void __launch_bounds__(32 * kWarps, kResident<N>) backward_kernel(const Backward a) {
  constexpr int kRows = kWarps / W;  // rows a block has in hand
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float shared[kWarps][128];
  __shared__ float2 halves[2][kWarps];
  const Waiting<N> waiting(a, memory);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp % W;
  const float width = static_cast<float>(a.width);
  const auto column = [&](int k) { return 4 * lane + 128 * (part + W * k); };
  Pack<4> sums[kSums][N];
#pragma unroll
  for (int q = 0; q < kSums; ++q) {
#pragma unroll
    for (int k = 0; k < N; ++k) sums[q][k] = {};
  }
  const std::int64_t step = std::int64_t{gridDim.x} * kRows;
  std::int64_t row = blockIdx.x * std::int64_t{kRows} + warp / W;
  const auto stats_of = [&](std::int64_t n) {
    return n < a.rows ? *reinterpret_cast<const float2*>(a.stats + 2 * n) : float2{0, 0};
  };
#pragma unroll
  for (int turn = 0; turn < kAhead; ++turn) waiting.fetch(turn, row + turn * step, column);
  float2 next_stats = stats_of(row);
  // All warps of a block take as many turns as its first row asks for: they meet in each.
  int turn = 0;
  for (std::int64_t first = blockIdx.x * std::int64_t{kRows}; first < a.rows;
       first += step, row += step, ++turn) {
    const std::int64_t base = row * a.width;
    const bool holds = row < a.rows;
    const float2 stats = next_stats;
    next_stats = stats_of(row + step);
    __pipeline_wait_prior(kAhead - 1);
    Pack<4> h[N], g[N], dr[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      h[k] = g[k] = dr[k] = {};
      if (!holds || column(k) >= a.width) continue;
      h[k] = waiting.r(turn, k);
      g[k] = waiting.dy(turn, k);
      if (a.incoming) dr[k] = waiting.incoming(turn, k);
    }
    waiting.fetch(turn + kAhead, row + kAhead * step, column);
    float2 sum{0, 0};  // of g and of g h
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int c = column(k);
      if (c >= a.width) continue;
      const Pack<4> gain = load<4>(a.gain + c);
#pragma unroll
      for (int j = 0; j < 4; ++j) h[k].v[j] = (h[k].v[j] - stats.x) * stats.y;
      if (a.again && holds) {
        Pack<4> y{};
        if (a.bias != nullptr) y = load<4>(a.bias + c);
#pragma unroll
        for (int j = 0; j < 4; ++j) y.v[j] = h[k].v[j] * gain.v[j] + y.v[j];
        store<4>(a.again, base + c, y);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sums[0][k].v[j] += g[k].v[j] * h[k].v[j];
        sums[1][k].v[j] += g[k].v[j];
        g[k].v[j] *= gain.v[j];
        sum.x += g[k].v[j];
        sum.y += g[k].v[j] * h[k].v[j];
      }
    }
    sum = {warp_sum(sum.x), warp_sum(sum.y)};
    if constexpr (W > 1) {
      // The two halves take turns: who is still reading one is not disturbed by the next row.
      if (lane == 0) halves[turn & 1][warp] = sum;
      meet<W>(warp / W);
      sum = {0, 0};
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float2 other = halves[turn & 1][warp / W * W + w];
        sum.x += other.x;
        sum.y += other.y;
      }
    }
    const float mean_g = a.rms ? 0 : sum.x / width, mean_gh = sum.y / width;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int c = column(k);
      if (!holds || c >= a.width) continue;
      Pack<4> scaled;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        dr[k].v[j] += stats.y * (g[k].v[j] - mean_g - h[k].v[j] * mean_gh);
        scaled.v[j] = a.branch_scale * dr[k].v[j];
        if constexpr (kSums == 3) sums[2][k].v[j] += scaled.v[j];
      }
      if (a.d_branch) {
        put<4>(a.d_branch, base + c, scaled, a.accumulate_branch);
      }
      if (a.dx) {
#pragma unroll
        for (int j = 0; j < 4; ++j) scaled.v[j] = a.stream_scale * dr[k].v[j];
        put<4>(a.dx, base + c, scaled, a.accumulate_dx);
      }
    }
  }
  // Over the rows the block had in hand, in their order.
#pragma unroll
  for (int q = 0; q < kSums; ++q) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      store<4>(&shared[warp][4 * lane], sums[q][k]);
      __syncthreads();
      for (int i = threadIdx.x; i < 128 * W; i += 32 * kWarps) {
        const int c = i % 128 + 128 * (i / 128 + W * k);
        float sum = 0;
        for (int r = 0; r < kRows; ++r) sum += shared[r * W + i / 128][i % 128];
        if (c < a.width) a.partial[(kSums * blockIdx.x + q) * a.width + c] = sum;
      }
      __syncthreads();
    }
  }
}

/// Any width: a block takes a row and reads it as often as it needs.
__global__ void forward_any_kernel(Forward a) {
  __shared__ float shared[33];
  const std::int64_t base = blockIdx.x * a.width;
  const auto at = [&](std::int64_t c) {
    float value = load<1>(a.x, base + c).v[0];
    if (a.branch) {
      value = a.stream_scale * value + a.branch_scale * load<1>(a.branch, base + c).v[0];
    }
    return value;
  };
  float sum = 0, square = 0;
  for (std::int64_t c = threadIdx.x; c < a.width; c += blockDim.x) sum += at(c);
  const float width = static_cast<float>(a.width);
  const float mean = a.rms ? 0 : block_sum(sum, shared) / width;
  for (std::int64_t c = threadIdx.x; c < a.width; c += blockDim.x) {
    square += (at(c) - mean) * (at(c) - mean);
  }
  const float s = rsqrtf(block_sum(square, shared) / width + a.epsilon);
  if (threadIdx.x == 0) {
    a.stats[2 * blockIdx.x] = mean;
    a.stats[2 * blockIdx.x + 1] = s;
  }
  for (std::int64_t c = threadIdx.x; c < a.width; c += blockDim.x) {
    const float r = at(c);  // r may lie on x: read before it is written
    if (a.branch) store<1>(a.r, base + c, {r});
    store<1>(a.y, base + c, {(r - mean) * s * a.gain[c] + (a.bias ? a.bias[c] : 0.0f)});
  }
}

/// One block a row; the row's share of the sums goes to partial[row].
__global__ void backward_any_kernel(Backward a) {
  __shared__ float shared[33];
  const std::int64_t row = blockIdx.x, base = row * a.width;
  const float mean = a.stats[2 * row], s = a.stats[2 * row + 1];
  float sum_g = 0, sum_gh = 0;
  for (std::int64_t c = threadIdx.x; c < a.width; c += blockDim.x) {
    const float h = (load<1>(a.r, base + c).v[0] - mean) * s;
    const float dy = load<1>(a.dy, base + c).v[0];
    sum_g += dy * a.gain[c];
    sum_gh += dy * a.gain[c] * h;
    if (a.partial != nullptr) {
      a.partial[(2 * row) * a.width + c] = dy * h;
      a.partial[(2 * row + 1) * a.width + c] = dy;
    }
  }
  const float width = static_cast<float>(a.width);
  const float mean_g = a.rms ? 0 : block_sum(sum_g, shared) / width;
  const float mean_gh = block_sum(sum_gh, shared) / width;
  for (std::int64_t c = threadIdx.x; c < a.width; c += blockDim.x) {
    const float h = (load<1>(a.r, base + c).v[0] - mean) * s;
    const float g = load<1>(a.dy, base + c).v[0] * a.gain[c];
    float dr = s * (g - mean_g - h * mean_gh);
    if (a.incoming) dr += load<1>(a.incoming, base + c).v[0];
    if (a.again) {
      store<1>(a.again, base + c, {h * a.gain[c] + (a.bias != nullptr ? a.bias[c] : 0.0f)});
    }
    if (a.d_branch) put<1>(a.d_branch, base + c, {a.branch_scale * dr}, a.accumulate_branch);
    if (a.dx) put<1>(a.dx, base + c, {a.stream_scale * dr}, a.accumulate_dx);
  }
}

struct Sums {
  float* target[3];  // d_gain, d_bias, the gradient of the branch's bias; or null
  bool accumulate[3];
};

/// Sums over the parts of partial [parts, count, width]; blockIdx.y says which of the count.
__global__ void reduce_kernel(const float* partial, std::int64_t parts, int count,
                              std::int64_t width, Sums sums) {
  __shared__ float shared[32][33];
  const int which = blockIdx.y;
  float* target = sums.target[which];
  if (target == nullptr) return;
  const std::int64_t c = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (c < width) {
#pragma unroll 8
    for (std::int64_t p = threadIdx.y; p < parts; p += 32) {
      sum += partial[(count * p + which) * width + c];
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= width) return;
  for (int y = 1; y < 32; ++y) sum += shared[y][threadIdx.x];
  target[c] = sums.accumulate[which] ? target[c] + sum : sum;
}

constexpr std::int64_t kWidest = 2048;

/// Calls body with the number of packs a lane holds; false when no kernel holds such a row.
template <class Body>
bool with_packs(std::int64_t width, const Body& body) {
  if (width % 4 != 0 || width > kWidest) return false;
  const std::int64_t packs = (width + 127) / 128;
  if (packs == 1) return body.template operator()<1>(), true;
  if (packs == 2) return body.template operator()<2>(), true;
  if (packs == 3) return body.template operator()<3>(), true;
  if (packs == 4) return body.template operator()<4>(), true;
  if (packs <= 6) return body.template operator()<6>(), true;
  if (packs <= 8) return body.template operator()<8>(), true;
  return body.template operator()<16>(), true;
}

}  // namespace

BoundOp bind(const Norm& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const Forward args{context.operand(op.x),
                     context.operand(op.branch),
                     context.operand(op.r),
                     context.operand(op.y),
                     context.floats(op.gain),
                     context.floats(op.bias),
                     context.floats(op.stats),
                     x.rows,
                     x.cols,
                     op.epsilon,
                     op.stream_scale,
                     op.branch_scale,
                     op.kind == NormKind::rms};
  return [args](cudaStream_t stream) {
    const bool held = with_packs(args.width, [&]<int N>() {
      forward_kernel<N><<<blocks_for(args.rows, kWarps), 32 * kWarps, 0, stream>>>(args);
    });
    if (!held) {
      forward_any_kernel<<<static_cast<unsigned>(args.rows), 256, 0, stream>>>(args);
    }
    check_launch("norm");
  };
}

namespace {

struct BackwardLaunch {
  void (*kernel)(Backward);
  int bytes;  // of shared memory
};

template <int N, int W, int kSums>
BackwardLaunch backward_launch(const Backward& a) {
  return {backward_kernel<N, W, kSums>, Waiting<N>::bytes(a)};
}

template <int kSums>
BackwardLaunch backward_launch(const Backward& a) {
  const std::int64_t packs = (a.width + 127) / 128;
  if (packs == 1) return backward_launch<1, 1, kSums>(a);
  if (packs == 2) return backward_launch<2, 1, kSums>(a);
  if (packs <= 4) return backward_launch<2, 2, kSums>(a);
  if (packs <= 6) return backward_launch<3, 2, kSums>(a);
  if (packs <= 8) return backward_launch<2, 4, kSums>(a);
  if (packs <= 12) return backward_launch<3, 4, kSums>(a);
  return backward_launch<4, 4, kSums>(a);
}

/// The kernel that holds rows in registers, if the device has the shared memory for it.
std::optional<BackwardLaunch> backward_launch(const Backward& a, bool branch_sums) {
  if (a.width % 4 != 0 || a.width > kWidest) return {};
  const BackwardLaunch launch = branch_sums ? backward_launch<3>(a) : backward_launch<2>(a);
  int device = 0, most = 0;
  check(cudaGetDevice(&device), "norm");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "norm");
  cudaFuncAttributes own{};
  check(cudaFuncGetAttributes(&own, launch.kernel), "norm");
  most -= static_cast<int>(own.sharedSizeBytes);
  if (launch.bytes > most) return {};
  // A property of the kernel, not of the launch: norms that share a kernel need the most.
  check(cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
        "norm");
  return launch;
}

/// As many blocks as the device holds at once: each then walks over its share of the rows.
std::int64_t resident_blocks(const BackwardLaunch& launch, int multiprocessors) {
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch.kernel, 32 * kWarps,
                                                      static_cast<std::size_t>(launch.bytes)),
        "norm");
  return std::int64_t{multiprocessors} * std::max(1, blocks);
}

/// Empty where the sums of the branch are asked for and no kernel takes them.
BoundOp bind_backward(const NormBackward& op, float* branch_sums, bool accumulate_branch_sums,
                      const Context& context) {
  const Tensor& r = context.tensor(op.r);
  const Backward bare{context.operand(op.dy),
                      context.operand(op.incoming),
                      context.operand(op.r),
                      context.operand(op.dx),
                      context.operand(op.d_branch),
                      context.operand(op.y_again),
                      context.floats(op.stats),
                      context.floats(op.gain),
                      context.floats(op.bias),
                      nullptr,
                      r.rows,
                      r.cols,
                      op.stream_scale,
                      op.branch_scale,
                      op.kind == NormKind::rms,
                      op.dx_mode == GradMode::accumulate,
                      op.d_branch_mode == GradMode::accumulate};
  const Sums sums{{context.floats(op.d_gain), context.floats(op.d_bias), branch_sums},
                  {op.d_gain_mode == GradMode::accumulate, op.d_bias_mode == GradMode::accumulate,
                   accumulate_branch_sums}};
  const int count = branch_sums ? 3 : 2;
  const auto held = backward_launch(bare, branch_sums != nullptr);
  if (!held && branch_sums != nullptr) return {};
  const BackwardLaunch launch = held.value_or(BackwardLaunch{backward_any_kernel, 0});
  const std::int64_t blocks =
      held ? std::min(r.rows, resident_blocks(launch, context.multiprocessors)) : r.rows;
  // Nobody waits for the sums over all rows: they are brought together beside what comes next.
  const auto partial = context.between();
  partial->reserve(blocks * count * r.cols * 4);
  SideWork reduction{.between = partial};
  for (float* target : sums.target) {
    if (target != nullptr) reduction.touched.writes.push_back(bytes_at(target, r.cols * 4));
  }
  reduction.run = [=, width = r.cols](cudaStream_t stream) {
    const dim3 columns(static_cast<unsigned>(blocks_for(width, 32)), static_cast<unsigned>(count));
    reduce_kernel<<<columns, dim3(32, 32), 0, stream>>>(static_cast<float*>(partial->data()),
                                                        blocks, count, width, sums);
    check_launch("norm backward");
  };
  context.beside(std::move(reduction));
  return [=](cudaStream_t stream) {
    Backward args = bare;
    args.partial = static_cast<float*>(partial->data());
    launch.kernel<<<static_cast<unsigned>(blocks), 32 * kWarps, launch.bytes, stream>>>(args);
    check_launch("norm backward");
  };
}

}  // namespace

BoundOp bind(const NormBackward& op, const Context& context) {
  return bind_backward(op, nullptr, false, context);
}

BoundOp bind_with_sums(const NormBackward& op, float* bias_sums, bool accumulate,
                       const Context& context) {
  return bind_backward(op, bias_sums, accumulate, context);
}

}  // namespace fathom::engine::cuda
