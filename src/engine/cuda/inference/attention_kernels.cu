// Softmax attention over fused rows of queries, keys and values in f32.
//
// `attend_kernel` goes over tiles of keys with running maxima and sums (arXiv 1805.02867,
// 2205.14135): a block holds a tile of queries of one head and one sequence; thread (ty, tx) of
// 16 x 16 has the scores of rows ty + 16 a and keys tx + 16 b, and of the result the same rows,
// columns 4 tx + 64 c and the next three. `weights_kernel` writes all weights of a head, for
// inspection.
#include "engine/cuda/check.h"
#include "engine/cuda/device.cuh"
#include "engine/cuda/inference/row_kernels.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kSide = 16, kThreads = kSide * kSide;
constexpr int kPad = 4;  // keeps float4 loads of neighbouring rows on different banks

/// kHead: the head's size rounded up, a multiple of 64; numbers beyond it are 0 here.
template <int kHead, int kTile>
struct AttentionTiles {
  float q[kTile][kHead + kPad];
  float kv[kTile][kHead + kPad];
  float p[kTile][kTile + kPad];
};

__device__ inline bool sees(const SequenceShape& s, std::int64_t query, std::int64_t key) {
  if (key >= s.tokens || (s.causal && key > query)) return false;
  return s.window == 0 || key > query - s.window;
}

__device__ inline float capped(float score, float cap) {
  return cap > 0 ? cap * tanhf(score / cap) : score;
}

/// Rows [first, first + kTile) of one head's part of qkv; 0 outside.
template <int kHead, int kTile>
__device__ inline void load_tile(const SequenceShape& s, const float* part, std::int64_t first,
                                 float (*tile)[kHead + kPad]) {
  for (int i = threadIdx.x; i < kTile * kHead; i += kThreads) {
    const int row = i / kHead, column = i % kHead;
    const std::int64_t place = first + row;
    tile[row][column] =
        place < s.tokens && column < s.head_size ? part[place * s.stride() + column] : 0.0f;
  }
}

__device__ inline float4 four(const float* p) {
  return *reinterpret_cast<const float4*>(p);
}

/// The largest, or the sum, over the 16 threads that share rows.
__device__ inline float side_max(float value) {
  for (int offset = kSide / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}
__device__ inline float side_sum(float value) {
  for (int offset = kSide / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

template <int kHead, int kTile>
__global__ void __launch_bounds__(kThreads)
    attend_kernel(SequenceShape s, const float* qkv, float* out) {
  constexpr int kRows = kTile / kSide, kChunks = kHead / 64;
  extern __shared__ float4 memory[];
  auto& tiles = *reinterpret_cast<AttentionTiles<kHead, kTile>*>(memory);
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kTile, head = blockIdx.y;
  const std::int64_t group = head * s.key_heads / s.heads;
  const float* sequence = qkv + blockIdx.z * s.tokens * s.stride();
  const float* keys = sequence + (s.heads + group) * s.head_size;
  const float* values = keys + s.key_heads * s.head_size;
  load_tile<kHead, kTile>(s, sequence + head * s.head_size, first, tiles.q);

  float top[kRows], sum[kRows];
  float4 result[kRows][kChunks];
  for (int a = 0; a < kRows; ++a) {
    top[a] = -INFINITY;
    sum[a] = 0;
    for (int c = 0; c < kChunks; ++c) result[a][c] = {0, 0, 0, 0};
  }
  const std::int64_t oldest = s.window > 0 && first >= s.window ? first - s.window + 1 : 0;
  const std::int64_t behind = s.causal && first + kTile < s.tokens ? first + kTile : s.tokens;
  for (std::int64_t key = oldest / kTile * kTile; key < behind; key += kTile) {
    __syncthreads();  // the previous values are no longer read
    load_tile<kHead, kTile>(s, keys, key, tiles.kv);
    __syncthreads();
    float score[kRows][kRows] = {};
    for (int d = 0; d < kHead; d += 4) {
      float4 k[kRows];
      for (int b = 0; b < kRows; ++b) k[b] = four(&tiles.kv[tx + kSide * b][d]);
      for (int a = 0; a < kRows; ++a) {
        const float4 q = four(&tiles.q[ty + kSide * a][d]);
        for (int b = 0; b < kRows; ++b) {
          score[a][b] += q.x * k[b].x + q.y * k[b].y + q.z * k[b].z + q.w * k[b].w;
        }
      }
    }
    for (int a = 0; a < kRows; ++a) {
      const std::int64_t query = first + ty + kSide * a;
      float largest = top[a];
      for (int b = 0; b < kRows; ++b) {
        score[a][b] =
            sees(s, query, key + tx + kSide * b) ? capped(s.scale * score[a][b], s.cap) : -INFINITY;
        largest = fmaxf(largest, score[a][b]);
      }
      largest = side_max(largest);
      const float origin = largest == -INFINITY ? 0.0f : largest;  // no key of this row so far
      const float shrink = expf(top[a] - origin);
      float added = 0;
      for (int b = 0; b < kRows; ++b) {
        const float weight = expf(score[a][b] - origin);
        tiles.p[ty + kSide * a][tx + kSide * b] = weight;
        added += weight;
      }
      sum[a] = sum[a] * shrink + side_sum(added);
      top[a] = largest;
      for (int c = 0; c < kChunks; ++c) {
        float4& r = result[a][c];
        r = {r.x * shrink, r.y * shrink, r.z * shrink, r.w * shrink};
      }
    }
    __syncthreads();  // the keys are no longer read, the weights are written
    load_tile<kHead, kTile>(s, values, key, tiles.kv);
    __syncthreads();
    for (int j = 0; j < kTile; ++j) {
      float4 v[kChunks];
      for (int c = 0; c < kChunks; ++c) v[c] = four(&tiles.kv[j][4 * tx + 64 * c]);
      for (int a = 0; a < kRows; ++a) {
        const float p = tiles.p[ty + kSide * a][j];
        for (int c = 0; c < kChunks; ++c) {
          float4& r = result[a][c];
          r = {r.x + p * v[c].x, r.y + p * v[c].y, r.z + p * v[c].z, r.w + p * v[c].w};
        }
      }
    }
  }
  for (int a = 0; a < kRows; ++a) {
    const std::int64_t query = first + ty + kSide * a;
    if (query >= s.tokens) continue;
    float* row = out + ((blockIdx.z * s.tokens + query) * s.heads + head) * s.head_size;
    for (int c = 0; c < kChunks; ++c) {
      const int column = 4 * tx + 64 * c;
      const float4 r = result[a][c];
      if (column < s.head_size) row[column] = r.x / sum[a];
      if (column + 1 < s.head_size) row[column + 1] = r.y / sum[a];
      if (column + 2 < s.head_size) row[column + 2] = r.z / sum[a];
      if (column + 3 < s.head_size) row[column + 3] = r.w / sum[a];
    }
  }
}

/// One block for each query; each thread rereads only the scores that it wrote itself.
__global__ void weights_kernel(SequenceShape s, std::int64_t head, const float* qkv,
                               float* weights) {
  __shared__ float shared[33], tops[kThreads / 32];
  const std::int64_t query = blockIdx.x, group = head * s.key_heads / s.heads;
  const float* q = qkv + query * s.stride() + head * s.head_size;
  const float* keys = qkv + (s.heads + group) * s.head_size;
  float* row = weights + query * s.tokens;
  float top = -INFINITY;
  for (std::int64_t j = threadIdx.x; j < s.tokens; j += blockDim.x) {
    float score = -INFINITY;
    if (sees(s, query, j)) {
      score = 0;
      for (std::int64_t d = 0; d < s.head_size; ++d) score += q[d] * keys[j * s.stride() + d];
      score = capped(s.scale * score, s.cap);
    }
    row[j] = score;
    top = fmaxf(top, score);
  }
  top = warp_max(top);
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  for (int warp = 0; warp < kThreads / 32; ++warp) top = fmaxf(top, tops[warp]);
  float sum = 0;
  for (std::int64_t j = threadIdx.x; j < s.tokens; j += blockDim.x) {
    row[j] = expf(row[j] - top);
    sum += row[j];
  }
  sum = block_sum(sum, shared);
  for (std::int64_t j = threadIdx.x; j < s.tokens; j += blockDim.x) row[j] /= sum;
}

template <int kHead, int kTile>
void launch_tiles(const SequenceShape& s, const float* qkv, float* out, cudaStream_t stream) {
  constexpr int kBytes = sizeof(AttentionTiles<kHead, kTile>);
  static_assert(kBytes <= kLeastSharedBytes);
  const auto kernel = attend_kernel<kHead, kTile>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
        "shared memory");
  const dim3 grid(static_cast<unsigned>(blocks_for(s.tokens, kTile)),
                  static_cast<unsigned>(s.heads), static_cast<unsigned>(s.sequences));
  kernel<<<grid, kThreads, kBytes, stream>>>(s, qkv, out);
  check_launch("attention");
}

}  // namespace

void launch_attention(const SequenceShape& shape, const float* qkv, float* out,
                      cudaStream_t stream) {
  if (shape.head_size <= 64) return launch_tiles<64, 64>(shape, qkv, out, stream);
  if (shape.head_size <= 128) return launch_tiles<128, 64>(shape, qkv, out, stream);
  launch_tiles<kMostHeadSize, 32>(shape, qkv, out, stream);
}

void launch_attention_weights(const SequenceShape& shape, std::int64_t head, const float* qkv,
                              float* weights, cudaStream_t stream) {
  weights_kernel<<<static_cast<unsigned>(shape.tokens), kThreads, 0, stream>>>(shape, head, qkv,
                                                                               weights);
  check_launch("attention weights");
}

}  // namespace fathom::engine::cuda
