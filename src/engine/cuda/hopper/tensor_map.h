// Tensor maps: what TMA knows about a tensor in global memory (host side).
#pragma once

#include <cuda.h>

#include <cstdint>

namespace fathom::engine::cuda::hopper {

struct TensorMapSpec {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  int rank = 2;
  cuuint64_t sizes[5] = {};    // fastest first
  cuuint64_t strides[4] = {};  // in bytes, of all dimensions but the first
  cuuint32_t box[5] = {};      // what one copy transfers
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
};

/// DeviceError when the driver refuses.
CUtensorMap make_tensor_map(const void* data, const TensorMapSpec& spec);

/// [rows, cols] of bf16 or f32, in boxes of 128 bytes of columns (swizzled) and `box_rows` rows.
CUtensorMap make_tensor_map(const void* data, std::int64_t rows, std::int64_t cols, int box_rows,
                            bool f32 = false);

}  // namespace fathom::engine::cuda::hopper
