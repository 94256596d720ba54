// A warp takes a row and keeps it in registers: lane l holds the packs of four at columns
// 4 (l + 32 k). Rows too wide or not of whole packs go to a kernel that reads them again instead.
#include "engine/cuda/device.cuh"
#include "engine/cuda/norm_gain.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kWarps = 8;  // per block

struct Forward {
  Operand x, branch, r, y;
  const float* gain;
  const float* bias;
  float* stats;
  std::int64_t rows, width;
  float epsilon, stream_scale, branch_scale;
  bool rms;
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
    const float r = at(c);  // r may be x: read before it is written
    if (a.branch) store<1>(a.r, base + c, {r});
    store<1>(a.y, base + c, {(r - mean) * s * a.gain[c] + (a.bias ? a.bias[c] : 0.0f)});
  }
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
                     gain_of(op.gain, x.cols, context),
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

}  // namespace fathom::engine::cuda
