// Shared parts of the tensor-core attention kernels: tiles in swizzled shared memory and the
// warp-level matrix product mma.m16n8k16 (bf16 in, f32 sums).
//
// A tile is ROWS x KP bf16 (KP: head size padded to 16, 32, 64 or 128), its 16-byte chunks permuted
// within a row so that the 8 rows an ldmatrix phase reads lie in 8 different bank groups. The
// permutation is an xor with bits of the row that repeat every 8 rows; hence the address of k-step
// kk is (address of step 0) ^ (kk << 5), and 16 rows further down is a constant offset.
//
// The mask is a band: query i sees the keys i - below <= j <= i + above, j < T.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace fathom::engine::cuda::flash {

using bf16 = __nv_bfloat16;

struct FlashArgs {
  const bf16 *q, *k, *v;  // column 0 of head 0; turned already if rotary
  const bf16 *dy, *y_in;  // backward only
  bf16* y;
  bf16 *dq, *dk, *dv;
  float* stats;         // [B H, T]
  float *lse2, *delta;  // [B H, T]: stats log2(e) and <dy_i, y_i>, left by an earlier kernel
  float* dq_sums;       // fused adjoint only: dq so far, in the order of its threads
  float* columns;       // f32 [B, 2 H K]: of dq and dv, only if their column sums are asked for
  std::int64_t qk_stride, v_stride, y_stride, d_stride;  // elements a row
  int batch, context, heads, key_heads, head_size;
  int above, below;
  float scale, scale_log2;
  int tiles;        // row tiles a head
  bool tile_major;  // launch order: all heads of a tile together (longest tiles first), or all
                    // tiles of a head (keys stay in L2)
  int group;        // fused adjoint only: query heads a key head
};

template <int KP>
__device__ __forceinline__ int swizzle(int row) {
  constexpr int kChunks = KP / 8;
  if constexpr (kChunks >= 8) {
    return row & 7;
  } else {
    return (row / (8 / kChunks)) & (kChunks - 1);
  }
}

/// Byte offset of a 16-byte chunk in a tile.
template <int KP>
__device__ __forceinline__ std::uint32_t chunk_offset(int row, int chunk) {
  return static_cast<std::uint32_t>(row * KP * 2 + ((chunk ^ swizzle<KP>(row)) << 4));
}

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void copy_async_16(std::uint32_t to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;  // the rest is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void copy_async_4(std::uint32_t to, const void* from, bool valid) {
  const int bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}

/// threadIdx.x, asked anew: what is computed from it is not held in registers over loops.
__device__ __forceinline__ int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

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
    copy_async_16(target + r * KP * 2, valid ? source + r * stride : from, valid);
  }
}

__device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void load_matrices_turned(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// c[16 x 8] += a[16 x 16] b[16 x 8]
__device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

__device__ __forceinline__ float2 unpack(std::uint32_t packed) {
  return {__uint_as_float(packed << 16), __uint_as_float(packed & 0xffff0000u)};
}

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/// Offsets of this lane for ldmatrix.x4 on a 16 x 16 block whose first row is a multiple of 8.
template <int KP>
__device__ __forceinline__ std::uint32_t left_offset(int lane) {  // a operand: rows m, columns k
  return chunk_offset<KP>(lane & 15, lane >> 4);
}
template <int KP>
__device__ __forceinline__ std::uint32_t right_offset(int lane) {  // b operand: rows n, columns k
  return chunk_offset<KP>((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
}
template <int KP>
__device__ __forceinline__ std::uint32_t turned_offset(int lane) {  // b operand: rows k, columns n
  return chunk_offset<KP>(lane & 15, lane >> 4);
}

/// The a operand of all k-steps of 16 MT rows, kept in registers.
template <int KP, int MT>
struct LeftOperand {
  std::uint32_t r[MT][KP / 16][4];

  __device__ __forceinline__ void load(std::uint32_t rows, int lane) {
    const std::uint32_t at = rows + left_offset<KP>(lane);
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
      for (int kk = 0; kk < KP / 16; ++kk) {
        load_matrices(r[mt][kk], (at ^ (kk << 5)) + mt * 16 * KP * 2);
      }
    }
  }
  __device__ __forceinline__ void get(std::uint32_t (&a)[4], int mt, int kk) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = r[mt][kk][i];
  }
};

/// The same, read from shared memory at each use: where registers are short.
template <int KP, int MT>
struct LeftOperandShared {
  std::uint32_t at;

  __device__ __forceinline__ void load(std::uint32_t rows, int lane) {
    at = rows + left_offset<KP>(lane);
  }
  __device__ __forceinline__ void get(std::uint32_t (&a)[4], int mt, int kk) const {
    load_matrices(a, (at ^ (kk << 5)) + mt * 16 * KP * 2);
  }
};

/// c[16 MT x N] = left[16 MT x KP] tile[N x KP]^T
template <int KP, int MT, int N, class Left>
__device__ __forceinline__ void product_turned(float (&c)[MT][N / 8][4], const Left& left,
                                               std::uint32_t tile, int lane) {
#pragma unroll
  for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) c[mt][n][i] = 0;
    }
  }
  const std::uint32_t at = tile + right_offset<KP>(lane);
#pragma unroll
  for (int kk = 0; kk < KP / 16; ++kk) {
    std::uint32_t a[MT][4];
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) left.get(a[mt], mt, kk);
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      std::uint32_t b[4];
      load_matrices(b, (at ^ (kk << 5)) + n * 16 * KP * 2);
#pragma unroll
      for (int mt = 0; mt < MT; ++mt) {
        multiply(c[mt][2 * n], a[mt], b[0], b[1]);
        multiply(c[mt][2 * n + 1], a[mt], b[2], b[3]);
      }
    }
  }
}

/// c[16 MT x KP] += p[16 MT x N] tile[N x KP], p rounded to bf16 where it lies in registers.
template <int KP, int MT, int N>
__device__ __forceinline__ void add_product(float (&c)[MT][KP / 8][4],
                                            const float (&p)[MT][N / 8][4], std::uint32_t tile,
                                            int lane) {
  const std::uint32_t at = tile + turned_offset<KP>(lane);
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
      load_matrices_turned(b, (at ^ (n << 5)) + kk * 16 * KP * 2);
#pragma unroll
      for (int mt = 0; mt < MT; ++mt) {
        multiply(c[mt][2 * n], a[mt], b[0], b[1]);
        multiply(c[mt][2 * n + 1], a[mt], b[2], b[3]);
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

/// What this block works on: a tile of rows of one head of one sequence. Kernels ask anew when they
/// store, instead of holding the answers in registers over their loops.
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

void launch_forward(const FlashArgs& args, cudaStream_t stream);
/// On warpgroup products; false, and nothing launched, where the driver cannot serve it.
bool launch_forward_groups(const FlashArgs& args, cudaStream_t stream);
void launch_backward(const FlashArgs& args, cudaStream_t stream);

/// The adjoint in one kernel of five products, for head sizes of 8 to 64.
void launch_backward_fused(const FlashArgs& args, cudaStream_t stream);
/// After it: totals[3 H K] (+)= the column sums of d_qkv.
void launch_total_columns(const FlashArgs& args, float* totals, bool add, cudaStream_t stream);
constexpr int kFusedBlocks = 132;  // one for each multiprocessor of an H100 or H200

}  // namespace fathom::engine::cuda::flash
