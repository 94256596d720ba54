#include "engine/cuda/check.h"
#include "engine/cuda/device.cuh"
#include "engine/cuda/inference/row_kernels.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kRowThreads = 256;
constexpr std::int64_t kMostBlocks = 1 << 20;

/// Kernels use grid-stride loops, so any number of items works.
int grid_of(std::int64_t items) {
  const std::int64_t blocks = (items + kRowThreads - 1) / kRowThreads;
  return static_cast<int>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__device__ inline std::int64_t first_item() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t item_step() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

__global__ void split_kernel(const float* x, std::int64_t count, int parts_wanted,
                             __nv_bfloat16* parts) {
  for (std::int64_t i = first_item(); i < count; i += item_step()) {
    float rest = x[i];
    for (int p = 0; p < parts_wanted; ++p) {
      const __nv_bfloat16 part = __float2bfloat16_rn(rest);
      parts[p * count + i] = part;
      rest -= __bfloat162float(part);  // exact: the leading bits cancel
    }
  }
}

__global__ void count_parts_kernel(const float* x, std::int64_t count, int* needed) {
  int most = 1;
  for (std::int64_t i = first_item(); i < count; i += item_step()) {
    float rest = x[i] - __bfloat162float(__float2bfloat16_rn(x[i]));
    if (rest == 0) continue;
    rest -= __bfloat162float(__float2bfloat16_rn(rest));
    const int own = rest == 0 ? 2 : 3;
    most = own > most ? own : most;
  }
  if (most > 1) atomicMax(needed, most);
}

/// One block for each part of a row. Sums in f64, as on the CPU.
__global__ void norm_kernel(NormShape s, const float* x, const float* gain, const float* bias,
                            float* y) {
  __shared__ double shared[33];
  const std::int64_t row = blockIdx.x / s.parts, part = blockIdx.x % s.parts;
  const std::int64_t begin = row * s.stride + part * s.size;
  double mean = 0;
  if (s.centred) {
    for (std::int64_t i = threadIdx.x; i < s.size; i += blockDim.x) mean += x[begin + i];
    mean = block_sum(mean, shared) / static_cast<double>(s.size);
  }
  double square = 0;
  for (std::int64_t i = threadIdx.x; i < s.size; i += blockDim.x) {
    const double d = x[begin + i] - mean;
    square += d * d;
  }
  square = block_sum(square, shared);
  const auto m = static_cast<float>(mean);
  const auto inverse =
      static_cast<float>(1 / sqrt(square / static_cast<double>(s.size) + s.epsilon));
  for (std::int64_t i = threadIdx.x; i < s.size; i += blockDim.x) {
    const float value = (x[begin + i] - m) * inverse * gain[i];
    y[begin + i] = bias == nullptr ? value : value + bias[i];
  }
}

__global__ void rotate_kernel(SequenceShape s, std::int64_t half, const float* cosines,
                              const float* sines, float* qkv) {
  const std::int64_t turned = s.heads + s.key_heads, items = s.rows() * turned * half;
  for (std::int64_t item = first_item(); item < items; item += item_step()) {
    const std::int64_t j = item % half, head = item / half % turned, row = item / half / turned;
    const std::int64_t angle = row % s.tokens * half + j;
    float* x = qkv + row * s.stride() + head * s.head_size + j;
    const float a = x[0], b = x[half], c = cosines[angle], sine = sines[angle];
    x[0] = a * c - b * sine;
    x[half] = b * c + a * sine;
  }
}

__device__ inline float activation_of(float u, RowActivation kind) {
  switch (kind) {
    case RowActivation::relu:
      return fmaxf(u, 0.0f);
    case RowActivation::gelu:
      return 0.5f * u * (1 + erff(u * 0.7071067811865476f));
    case RowActivation::gelu_tanh: {
      const float z = 0.7978845608028654f * (u + 0.044715f * u * u * u);
      return u / (1 + expf(-2 * z));  // (1 + tanh z) / 2 is the logistic of 2 z
    }
    case RowActivation::silu:
      return u / (1 + expf(-u));
    case RowActivation::identity:
      break;
  }
  return u;
}

__global__ void activate_kernel(const float* u, std::int64_t rows, std::int64_t ffn,
                                RowActivation kind, bool gated, float* y) {
  const std::int64_t items = rows * ffn;
  for (std::int64_t item = first_item(); item < items; item += item_step()) {
    if (!gated) {
      y[item] = activation_of(u[item], kind);
      continue;
    }
    const std::int64_t gate = item / ffn * 2 * ffn + item % ffn;
    y[item] = activation_of(u[gate], kind) * u[gate + ffn];
  }
}

__global__ void add_scaled_kernel(float* x, const float* y, std::int64_t count, float scale) {
  for (std::int64_t i = first_item(); i < count; i += item_step()) x[i] += scale * y[i];
}

__global__ void add_bias_kernel(float* x, std::int64_t count, std::int64_t size,
                                const float* bias) {
  for (std::int64_t i = first_item(); i < count; i += item_step()) x[i] += bias[i % size];
}

__global__ void set_columns_kernel(std::int64_t rows, std::int64_t stride, std::int64_t begin,
                                   std::int64_t size, const float* values, float* x) {
  for (std::int64_t i = first_item(); i < rows * size; i += item_step()) {
    x[i / size * stride + begin + i % size] = values == nullptr ? 0.0f : values[i % size];
  }
}

__global__ void scale_and_cap_kernel(float* x, std::int64_t count, float scale, float cap) {
  for (std::int64_t i = first_item(); i < count; i += item_step()) {
    const float value = x[i] * scale;
    x[i] = cap > 0 ? cap * tanhf(value / cap) : value;
  }
}

/// One block for each row of logits.
__global__ void losses_kernel(const float* logits, std::int64_t vocab, const std::int32_t* targets,
                              float* out) {
  __shared__ double shared[33];
  __shared__ float tops[32];
  const std::int64_t row = blockIdx.x;
  const std::int32_t target = targets[row];
  if (target < 0) {  // the same for the whole block
    if (threadIdx.x == 0) out[row] = 0;
    return;
  }
  const float* x = logits + row * vocab;
  float top = -INFINITY;
  for (std::int64_t i = threadIdx.x; i < vocab; i += blockDim.x) top = fmaxf(top, x[i]);
  top = warp_max(top);
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  top = tops[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) top = fmaxf(top, tops[warp]);
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < vocab; i += blockDim.x) sum += expf(x[i] - top);
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) {
    out[row] =
        static_cast<float>(static_cast<double>(top) + log(sum) - static_cast<double>(x[target]));
  }
}

}  // namespace

void launch_split(const float* x, std::int64_t count, int parts_wanted, __nv_bfloat16* parts,
                  cudaStream_t stream) {
  split_kernel<<<grid_of(count), kRowThreads, 0, stream>>>(x, count, parts_wanted, parts);
  check_launch("split into bf16 parts");
}

void launch_count_parts(const float* x, std::int64_t count, int* needed, cudaStream_t stream) {
  count_parts_kernel<<<grid_of(count), kRowThreads, 0, stream>>>(x, count, needed);
  check_launch("count of bf16 parts");
}

void launch_norm(const NormShape& shape, const float* x, const float* gain, const float* bias,
                 float* y, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(shape.rows * shape.parts);
  const int threads = shape.size <= 128 ? 32 : kRowThreads;
  norm_kernel<<<blocks, threads, 0, stream>>>(shape, x, gain, bias, y);
  check_launch("norm");
}

void launch_rotate(const SequenceShape& shape, std::int64_t half, const float* cosines,
                   const float* sines, float* qkv, cudaStream_t stream) {
  const std::int64_t items = shape.rows() * (shape.heads + shape.key_heads) * half;
  rotate_kernel<<<grid_of(items), kRowThreads, 0, stream>>>(shape, half, cosines, sines, qkv);
  check_launch("rotary positions");
}

void launch_activate(const float* u, std::int64_t rows, std::int64_t ffn, RowActivation kind,
                     bool gated, float* y, cudaStream_t stream) {
  activate_kernel<<<grid_of(rows * ffn), kRowThreads, 0, stream>>>(u, rows, ffn, kind, gated, y);
  check_launch("activation");
}

void launch_add_scaled(float* x, const float* y, std::int64_t count, float scale,
                       cudaStream_t stream) {
  add_scaled_kernel<<<grid_of(count), kRowThreads, 0, stream>>>(x, y, count, scale);
  check_launch("residual");
}

void launch_add_bias(float* x, std::int64_t rows, std::int64_t size, const float* bias,
                     cudaStream_t stream) {
  add_bias_kernel<<<grid_of(rows * size), kRowThreads, 0, stream>>>(x, rows * size, size, bias);
  check_launch("bias");
}

void launch_set_columns(std::int64_t rows, std::int64_t stride, std::int64_t begin,
                        std::int64_t size, const float* values, float* x, cudaStream_t stream) {
  set_columns_kernel<<<grid_of(rows * size), kRowThreads, 0, stream>>>(rows, stride, begin, size,
                                                                       values, x);
  check_launch("columns");
}

void launch_scale_and_cap(float* x, std::int64_t count, float scale, float cap,
                          cudaStream_t stream) {
  scale_and_cap_kernel<<<grid_of(count), kRowThreads, 0, stream>>>(x, count, scale, cap);
  check_launch("scale of logits");
}

void launch_losses(const float* logits, std::int64_t rows, std::int64_t vocab,
                   const std::int32_t* targets, float* out, cudaStream_t stream) {
  losses_kernel<<<static_cast<unsigned>(rows), kRowThreads, 0, stream>>>(logits, vocab, targets,
                                                                         out);
  check_launch("losses");
}

}  // namespace fathom::engine::cuda
