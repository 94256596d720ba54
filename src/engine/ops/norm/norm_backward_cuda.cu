// Backward of the norm (definition: ops/norm/norm.h). The lanes that share a row hold 8
// neighbouring columns each, with the sums of these columns over the rows; meanwhile the operands
// of the next rows are copied to shared memory. Rows that are too wide, not of whole packs or of
// mixed types go to a kernel that reads them again instead.
#include <cuda_pipeline_primitives.h>

#include <optional>

#include "engine/cuda/device.cuh"
#include "engine/cuda/norm_gain.h"

namespace fathom::engine::cuda {
namespace {

struct Backward {
  Operand dy, incoming, r, dx, d_branch;
  const float* stats;
  const float* gain;
  float* partial;  // [blocks, sums, width]: sums of dy h, dy and, if 3, d_branch
  std::int64_t rows, width;
  float stream_scale, branch_scale;
  bool rms, accumulate_dx, accumulate_branch;
};

constexpr int kAhead = 3;  // rows whose operands are being fetched while one is processed
constexpr int kTurns = kAhead + 1;

/// How a block divides its work: a row is taken by LANES lanes, of one warp or of several.
template <int LANES>
struct Share {
  static constexpr int kWarps = LANES <= 32 ? 1 : LANES / 32;  // that share a row
  static constexpr int kRows = LANES == 96 ? 4 : 256 / LANES;  // at a time
  static constexpr int kThreads = LANES * kRows;
  static constexpr int kColumns = LANES * 8;
};

/// 8 neighbouring elements staged through shared memory: pieces of 16 bytes, those of all threads
/// side by side. Only the thread that fetches them reads them, so no barrier is needed.
template <class T, int THREADS>
struct StagedPiece {
  static constexpr int kCount = sizeof(T) * 8 / 16;
  static constexpr int kBytes = kCount * THREADS * 16;

  static __device__ __forceinline__ void fetch(unsigned char* place, const T* from) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      __pipeline_memcpy_async(place + i * THREADS * 16,
                              reinterpret_cast<const unsigned char*>(from) + i * 16, 16);
    }
  }
  static __device__ __forceinline__ Pack<8> read(const unsigned char* place) {
    if constexpr (kCount == 1) {
      return load<8>(reinterpret_cast<const T*>(place));
    } else {
      Pack<8> all;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Pack<4> four = load<4>(reinterpret_cast<const T*>(place + i * THREADS * 16));
#pragma unroll
        for (int j = 0; j < 4; ++j) all.v[4 * i + j] = four.v[j];
      }
      return all;
    }
  }
};

/// What is staged in shared memory for a turn: r, dy and incoming of the block's rows.
template <class TR, class TG, int THREADS>
struct Waiting {
  static constexpr int kDy = StagedPiece<TR, THREADS>::kBytes;
  static constexpr int kIncoming = kDy + StagedPiece<TG, THREADS>::kBytes;
  static constexpr int kBytes = kIncoming + StagedPiece<TG, THREADS>::kBytes;

  static __device__ __forceinline__ void fetch(const Backward& a, unsigned char* place,
                                               std::int64_t i) {
    StagedPiece<TR, THREADS>::fetch(place, static_cast<const TR*>(a.r.data) + i);
    StagedPiece<TG, THREADS>::fetch(place + kDy, static_cast<const TG*>(a.dy.data) + i);
    if (!a.incoming) return;
    StagedPiece<TG, THREADS>::fetch(place + kIncoming, static_cast<const TG*>(a.incoming.data) + i);
  }
};

template <int LANES>
__device__ __forceinline__ float2 row_sum(float2 own, float2 (*between)[8], int turn) {
#pragma unroll
  for (int offset = (LANES < 32 ? LANES : 32) / 2; offset > 0; offset /= 2) {
    own.x += __shfl_xor_sync(0xffffffffu, own.x, offset);
    own.y += __shfl_xor_sync(0xffffffffu, own.y, offset);
  }
  constexpr int kMeet = Share<LANES>::kWarps;
  if constexpr (kMeet > 1) {
    // The two buffers alternate: threads still reading one are not disturbed by the next row.
    const int warp = threadIdx.x / 32, row = warp / kMeet;
    float2* sums = between[2 * row + (turn & 1)];
    if (threadIdx.x % 32 == 0) sums[warp % kMeet] = own;
    asm volatile("bar.sync %0, %1;" ::"r"(row + 1), "n"(LANES) : "memory");
    own = {0, 0};
#pragma unroll
    for (int w = 0; w < kMeet; ++w) {
      own.x += sums[w].x;
      own.y += sums[w].y;
    }
  }
  return own;
}

template <class T>
__device__ __forceinline__ void put_pack(T* to, Pack<8> value, bool accumulate) {
  if (accumulate) {
    const Pack<8> old = load<8>(to);
#pragma unroll
    for (int j = 0; j < 8; ++j) value.v[j] += old.v[j];
  }
  store<8>(to, value);
}

/// r becomes h and dy becomes g = dy gain, adding to the sums of dy h and dy; returns the thread's
/// sums of g and of g h.
__device__ __forceinline__ float2 normalise(Pack<8>& h, Pack<8>& g, const Pack<8>& gain,
                                            float2 stats, Pack<8> (&sums)[3]) {
  float2 sum{0, 0};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    h.v[j] = (h.v[j] - stats.x) * stats.y;
    sums[0].v[j] += g.v[j] * h.v[j];
    sums[1].v[j] += g.v[j];
    g.v[j] *= gain.v[j];
    sum.x += g.v[j];
    sum.y += g.v[j] * h.v[j];
  }
  return sum;
}

/// The block's column sums, over the rows it had at a time, in their order. `all` is free.
template <int LANES>
__device__ __forceinline__ void put_column_sums(const Backward& a, const Pack<8> (&sums)[3],
                                                float* all, int in_hand, int c, int width) {
  using S = Share<LANES>;
  __syncthreads();
#pragma unroll
  for (int q = 0; q < 3; ++q) {
    store<8>(all + in_hand * S::kColumns + c, sums[q]);
    __syncthreads();
    for (int i = threadIdx.x; i < width; i += S::kThreads) {
      float sum = 0;
#pragma unroll 4
      for (int r = 0; r < S::kRows; ++r) sum += all[r * S::kColumns + i];
      a.partial[(std::int64_t{3} * blockIdx.x + q) * width + i] = sum;
    }
    __syncthreads();
  }
}

/// r of type TR, all gradients of type TG.
template <int LANES, class TR, class TG>
__global__ void __launch_bounds__(Share<LANES>::kThreads, LANES == 96 ? 2 : 3)
    backward_kernel(const Backward a) {
  using S = Share<LANES>;
  using W = Waiting<TR, TG, S::kThreads>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float2 between[2 * S::kRows][8];
  const int width = static_cast<int>(a.width), rows = static_cast<int>(a.rows);
  const int in_hand = threadIdx.x / LANES, c = threadIdx.x % LANES * 8;
  const bool inside = c < width;
  unsigned char* own = memory + threadIdx.x * 16;
  const int first = blockIdx.x * S::kRows, step = gridDim.x * S::kRows;
  const auto at = [&](int row) { return static_cast<std::int64_t>(row) * width + c; };
  const auto fetch = [&](int turn, int row) {
    if (inside && row < rows) W::fetch(a, own + turn % kTurns * W::kBytes, at(row));
    __pipeline_commit();
  };
  const auto stats_of = [&](int row) {
    return row < rows ? reinterpret_cast<const float2*>(a.stats)[row] : float2{0, 0};
  };
  Pack<8> gain{}, sums[3] = {};
  if (inside) gain = load<8>(a.gain + c);
  const float inverse_width = 1 / static_cast<float>(width);
  int row = first + in_hand;
#pragma unroll
  for (int turn = 0; turn < kAhead; ++turn) fetch(turn, row + turn * step);
  float2 next_stats = stats_of(row);
  // All lanes of a block take as many turns as its first row needs: they synchronise in each.
  for (int turn = 0; first + turn * step < rows; ++turn, row += step) {
    const bool holds = inside && row < rows;
    const float2 stats = next_stats;
    next_stats = stats_of(row + step);
    __pipeline_wait_prior(kAhead - 1);
    Pack<8> h{}, g{}, dr{};
    if (holds) {
      const unsigned char* place = own + turn % kTurns * W::kBytes;
      h = StagedPiece<TR, S::kThreads>::read(place);
      g = StagedPiece<TG, S::kThreads>::read(place + W::kDy);
      if (a.incoming) dr = StagedPiece<TG, S::kThreads>::read(place + W::kIncoming);
    }
    fetch(turn + kAhead, row + kAhead * step);
    const float2 sum = row_sum<LANES>(normalise(h, g, gain, stats, sums), between, turn);
    const float mean_g = a.rms ? 0 : sum.x * inverse_width, mean_gh = sum.y * inverse_width;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      dr.v[j] += stats.y * (g.v[j] - mean_g - h.v[j] * mean_gh);
      g.v[j] = a.branch_scale * dr.v[j];
      sums[2].v[j] += holds ? g.v[j] : 0.0f;
      dr.v[j] *= a.stream_scale;
    }
    if (!holds) continue;
    if (a.d_branch) put_pack(static_cast<TG*>(a.d_branch.data) + at(row), g, a.accumulate_branch);
    if (a.dx) put_pack(static_cast<TG*>(a.dx.data) + at(row), dr, a.accumulate_dx);
  }
  put_column_sums<LANES>(a, sums, reinterpret_cast<float*>(memory), in_hand, c, width);
}

/// One block per row; the row's share of the sums goes to partial[row].
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
    if (a.d_branch) put<1>(a.d_branch, base + c, {a.branch_scale * dr}, a.accumulate_branch);
    if (a.dx) put<1>(a.dx, base + c, {a.stream_scale * dr}, a.accumulate_dx);
  }
}

/// Sums over the parts of partial [parts, count, width]; blockIdx.y says which of the count.
__global__ void reduce_kernel(const float* partial, std::int64_t parts, int count,
                              std::int64_t width, NormSums sums) {
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

struct BackwardLaunch {
  void (*kernel)(Backward) = backward_any_kernel;
  int threads = 256, bytes = 0;  // of shared memory
  int rows = 1;                  // that a block takes at a time
  int sums = 2;
};

template <int LANES, class TR, class TG>
BackwardLaunch backward_launch() {
  using S = Share<LANES>;
  constexpr int kBytes = kTurns * Waiting<TR, TG, S::kThreads>::kBytes;
  static_assert(kBytes >= S::kRows * S::kColumns * 4);
  return {backward_kernel<LANES, TR, TG>, S::kThreads, kBytes, S::kRows, 3};
}

template <class TR, class TG>
BackwardLaunch backward_launch(std::int64_t width) {
  if (width <= 64) return backward_launch<8, TR, TG>();
  if (width <= 128) return backward_launch<16, TR, TG>();
  if (width <= 256) return backward_launch<32, TR, TG>();
  if (width <= 512) return backward_launch<64, TR, TG>();
  if (width <= 768) return backward_launch<96, TR, TG>();
  if (width <= 1024) return backward_launch<128, TR, TG>();
  return backward_launch<256, TR, TG>();
}

constexpr std::int64_t kWidestBackward = 2048;

/// The kernel that keeps rows in registers, if one fits the shape and the device.
std::optional<BackwardLaunch> held_launch(const Backward& a, const Gpu& gpu) {
  if (a.width % 8 != 0 || a.width > kWidestBackward || a.rows >= 1 << 24) return {};
  for (const Operand& operand : {a.incoming, a.dx, a.d_branch}) {
    if (operand && operand.bf16 != a.dy.bf16) return {};
  }
  if (a.r.bf16 && !a.dy.bf16) return {};
  const BackwardLaunch launch = a.r.bf16    ? backward_launch<__nv_bfloat16, __nv_bfloat16>(a.width)
                                : a.dy.bf16 ? backward_launch<float, __nv_bfloat16>(a.width)
                                            : backward_launch<float, float>(a.width);
  cudaFuncAttributes own{};
  check(cudaFuncGetAttributes(&own, launch.kernel), "norm");
  if (launch.bytes + static_cast<int>(own.sharedSizeBytes) > gpu.shared_bytes) return {};
  check(cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             launch.bytes),
        "norm");
  return launch;
}

/// As many blocks as the device holds at once: each then walks over its share of the rows.
std::int64_t resident_blocks(const BackwardLaunch& launch, std::int64_t rows, const Gpu& gpu) {
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch.kernel, launch.threads,
                                                      static_cast<std::size_t>(launch.bytes)),
        "norm");
  return std::min(std::int64_t{gpu.multiprocessors} * std::max(1, blocks),
                  (rows + launch.rows - 1) / launch.rows);
}

/// How a backward is launched, with or without the sums of the branch.
struct BackwardPlan {
  Backward args;
  BackwardLaunch launch;
  std::int64_t blocks = 0;
  bool sums_branch = false;
};

BackwardPlan plan_backward(const NormBackward& op, const Context& context) {
  const Tensor& r = context.tensor(op.r);
  BackwardPlan plan;
  plan.args = {context.operand(op.dy),
               context.operand(op.incoming),
               context.operand(op.r),
               context.operand(op.dx),
               context.operand(op.d_branch),
               context.floats(op.stats),
               gain_of(op.gain, r.cols, context),
               nullptr,
               r.rows,
               r.cols,
               op.stream_scale,
               op.branch_scale,
               op.kind == NormKind::rms,
               op.dx_mode == GradMode::accumulate,
               op.d_branch_mode == GradMode::accumulate};
  const auto held = held_launch(plan.args, context.gpu);
  plan.launch = held.value_or(BackwardLaunch{});
  plan.blocks = held ? resident_blocks(plan.launch, r.rows, context.gpu) : r.rows;
  plan.sums_branch = held.has_value();
  return plan;
}

BoundOp bind_backward(const NormBackward& op, const BackwardPlan& plan, const ColumnSums& branch,
                      const Context& context) {
  const NormSums sums{{context.floats(op.d_gain), op.d_gain_mode == GradMode::accumulate},
                      {context.floats(op.d_bias), op.d_bias_mode == GradMode::accumulate},
                      branch};
  const auto partial = reduce_beside(sums, plan.blocks, plan.launch.sums, plan.args.width, context);
  return [=](cudaStream_t stream) {
    Backward args = plan.args;
    args.partial = static_cast<float*>(partial->data());
    plan.launch.kernel<<<static_cast<unsigned>(plan.blocks), plan.launch.threads, plan.launch.bytes,
                         stream>>>(args);
    check_launch("norm backward");
  };
}

}  // namespace

void reduce_sums(const float* partial, std::int64_t parts, int count, std::int64_t width,
                 const NormSums& sums, cudaStream_t stream) {
  const dim3 columns(static_cast<unsigned>(blocks_for(width, 32)), static_cast<unsigned>(count));
  reduce_kernel<<<columns, dim3(32, 32), 0, stream>>>(partial, parts, count, width, sums);
  check_launch("sums of a norm");
}

std::shared_ptr<Scratch> reduce_beside(const NormSums& sums, std::int64_t parts, int count,
                                       std::int64_t width, const Context& context) {
  const auto partial = context.between();
  partial->reserve(parts * count * width * 4);
  SideWork reduction{.between = partial};
  for (float* target : sums.target) {
    if (target != nullptr) reduction.touched.writes.push_back(bytes_at(target, width * 4));
  }
  reduction.run = [=](cudaStream_t stream) {
    reduce_sums(static_cast<const float*>(partial->data()), parts, count, width, sums, stream);
  };
  context.beside(std::move(reduction));
  return partial;
}

BoundOp bind(const NormBackward& op, const Context& context) {
  return bind_backward(op, plan_backward(op, context), {}, context);
}

BoundOp bind(const WithBiasGradient<NormBackward>& op, const Context& context) {
  const BackwardPlan plan = plan_backward(op.maker, context);
  if (plan.sums_branch) {
    return bind_backward(op.maker, plan, column_sums(op.bias, context), context);
  }
  // Rows that no kernel holds in registers on this device.
  const BoundOp norm = bind_backward(op.maker, plan, {}, context), bias = bind(op.bias, context);
  return [norm, bias](cudaStream_t stream) {
    norm(stream);
    bias(stream);
  };
}

}  // namespace fathom::engine::cuda
