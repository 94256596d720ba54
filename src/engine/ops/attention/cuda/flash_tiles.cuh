// Shared parts of the tensor-core attention kernels: GEMMs of tiles in shared memory
// (warp_mma.cuh), and how blocks divide the work.
#pragma once

#include "engine/cuda/warp_mma.cuh"
#include "engine/ops/attention/cuda/flash_args.h"

namespace fathom::engine::cuda::flash {

/// Rows [0, rows_left) and columns [0, head_size) of `from`; zeros elsewhere.
template <int KP, int ROWS, int THREADS>
__device__ __forceinline__ void load_tile(std::uint32_t to, const bf16* from, std::int64_t stride,
                                          int rows_left, int head_size) {
  constexpr int kChunks = KP / 8;
  constexpr int kStep = THREADS / kChunks;
  static_assert(THREADS % kChunks == 0 && kStep % 8 == 0);
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  const std::uint32_t target = to + chunk_offset<KP>(row, chunk);
  const bool column = chunk * 8 < head_size;
  const bf16* source = from + row * stride + chunk * 8;
#pragma unroll
  for (int r = 0; r < ROWS; r += kStep) {
    if (ROWS % kStep != 0 && r + row >= ROWS) break;
    const bool valid = column && r + row < rows_left;
    cp_async_16(target + r * KP * 2, valid ? source + r * stride : from, valid);
  }
}

/// The keys and values that a block walks over, two tiles in flight: tile t lies in buffer t & 1.
template <int KP, int ROWS, int THREADS>
struct KeyBuffers {
  static constexpr int kBytes = ROWS * KP * 2;  // of one buffer
  const bf16 *k, *v;                            // of the head
  std::uint32_t k_tiles, v_tiles;

  __device__ __forceinline__ void load(const FlashArgs& args, int tile) const {
    const int buffer = tile & 1, key0 = tile * ROWS;
    load_tile<KP, ROWS, THREADS>(k_tiles + buffer * kBytes, k + key0 * args.qk_stride,
                                 args.qk_stride, args.context - key0, args.head_size);
    load_tile<KP, ROWS, THREADS>(v_tiles + buffer * kBytes, v + key0 * args.v_stride, args.v_stride,
                                 args.context - key0, args.head_size);
  }
  __device__ __forceinline__ std::uint32_t keys(int tile) const {
    return k_tiles + (tile & 1) * kBytes;
  }
  __device__ __forceinline__ std::uint32_t values(int tile) const {
    return v_tiles + (tile & 1) * kBytes;
  }
};

/// The a operand of all k-steps of 16 MT rows, kept in registers.
template <int KP, int MT>
struct OperandA {
  std::uint32_t r[MT][KP / 16][4];

  __device__ __forceinline__ void load(std::uint32_t rows, int lane) {
    const std::uint32_t at = rows + a_offset<KP>(lane);
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
      for (int kk = 0; kk < KP / 16; ++kk) {
        ldmatrix_x4(r[mt][kk], (at ^ (kk << 5)) + mt * 16 * KP * 2);
      }
    }
  }
  __device__ __forceinline__ void get(std::uint32_t (&a)[4], int mt, int kk) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = r[mt][kk][i];
  }
};

/// The same, read from shared memory at each use, for when registers are short.
template <int KP, int MT>
struct OperandAShared {
  std::uint32_t at;

  __device__ __forceinline__ void load(std::uint32_t rows, int lane) {
    at = rows + a_offset<KP>(lane);
  }
  __device__ __forceinline__ void get(std::uint32_t (&a)[4], int mt, int kk) const {
    ldmatrix_x4(a, (at ^ (kk << 5)) + mt * 16 * KP * 2);
  }
};

/// c[16 MT x N] = left[16 MT x KP] tile[N x KP]^T
template <int KP, int MT, int N, class Left>
__device__ __forceinline__ void multiply_transposed(float (&c)[MT][N / 8][4], const Left& left,
                                                    std::uint32_t tile, int lane) {
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) c[mt][n][i] = 0;
    }
  }
  const std::uint32_t at = tile + b_offset<KP>(lane);
#pragma unroll
  for (int kk = 0; kk < KP / 16; ++kk) {
    std::uint32_t a[MT][4];
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) left.get(a[mt], mt, kk);
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      std::uint32_t b[4];
      ldmatrix_x4(b, (at ^ (kk << 5)) + n * 16 * KP * 2);
#pragma unroll
      for (int mt = 0; mt < MT; ++mt) {
        mma_m16n8k16(c[mt][2 * n], a[mt], b[0], b[1]);
        mma_m16n8k16(c[mt][2 * n + 1], a[mt], b[2], b[3]);
      }
    }
  }
}

/// c[16 MT x KP] += p[16 MT x N] tile[N x KP], p rounded to bf16 in registers.
template <int KP, int MT, int N>
__device__ __forceinline__ void multiply_add(float (&c)[MT][KP / 8][4],
                                             const float (&p)[MT][N / 8][4], std::uint32_t tile,
                                             int lane) {
  const std::uint32_t at = tile + b_trans_offset<KP>(lane);
#pragma unroll
  for (int kk = 0; kk < N / 16; ++kk) {
    std::uint32_t a[MT][4];
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
      a[mt][0] = pack(p[mt][2 * kk][0], p[mt][2 * kk][1]);
      a[mt][1] = pack(p[mt][2 * kk][2], p[mt][2 * kk][3]);
      a[mt][2] = pack(p[mt][2 * kk + 1][0], p[mt][2 * kk + 1][1]);
      a[mt][3] = pack(p[mt][2 * kk + 1][2], p[mt][2 * kk + 1][3]);
    }
#pragma unroll
    for (int n = 0; n < KP / 16; ++n) {
      std::uint32_t b[4];
      ldmatrix_x4_trans(b, (at ^ (n << 5)) + kk * 16 * KP * 2);
#pragma unroll
      for (int mt = 0; mt < MT; ++mt) {
        mma_m16n8k16(c[mt][2 * n], a[mt], b[0], b[1]);
        mma_m16n8k16(c[mt][2 * n + 1], a[mt], b[2], b[3]);
      }
    }
  }
}

/// Writes this warp's 16 MT rows of c, times factor[row], through its own rows of a tile so that
/// global memory sees whole 16-byte chunks. No other warp may use these rows of shared memory.
template <int KP, int MT>
__device__ __forceinline__ void store_rows(const float (&c)[MT][KP / 8][4],
                                           const float (&factor)[MT][2], std::uint32_t rows,
                                           bf16* to, std::int64_t stride, int rows_left,
                                           int head_size, int lane) {
  __syncwarp();
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = mt * 16 + half * 8 + (lane >> 2);
#pragma unroll
      for (int n = 0; n < KP / 8; ++n) {
        const std::uint32_t value =
            pack(c[mt][n][2 * half] * factor[mt][half], c[mt][n][2 * half + 1] * factor[mt][half]);
        asm volatile(
            "st.shared.u32 [%0], %1;" ::"r"(rows + chunk_offset<KP>(row, n) + (lane & 3) * 4),
            "r"(value)
            : "memory");
      }
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * MT * (KP / 8); i += 32) {
    const int row = i / (KP / 8), chunk = i % (KP / 8);
    uint4 value;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "r"(rows + chunk_offset<KP>(row, chunk))
                 : "memory");
    if (row < rows_left && chunk * 8 < head_size) {
      *reinterpret_cast<uint4*>(to + row * stride + chunk * 8) = value;
    }
  }
}

/// What this block works on: a tile of rows of one head of one sequence. Kernels compute it
/// again when they store, instead of holding it in registers across their loops.
struct BlockPlace {
  int sequence, b, head, tile;  // sequence = b heads + head
  std::int64_t first_row;       // of the sequence, in qkv and y

  __device__ __forceinline__ BlockPlace(const FlashArgs& args, int heads) {
    int block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));  // volatile: not merged with others
    const int sequences = args.batch * heads;
    sequence = args.tile_major ? block % sequences : block / args.tiles;
    tile = args.tile_major ? block / sequences : block % args.tiles;
    b = sequence / heads;
    head = sequence % heads;
    first_row = static_cast<std::int64_t>(b) * args.context;
  }
};

}  // namespace fathom::engine::cuda::flash
