// Memory of f32 or bf16 as kernels take it.
//
// An operand's type is checked when it is read: the branch is uniform over a whole grid and costs
// nothing compared with the memory access, and one kernel serves every mix of types.
#pragma once

#include <cuda_runtime_api.h>

namespace fathom::engine::cuda {

struct Operand {
  void* data = nullptr;
  bool bf16 = false;
  __host__ __device__ explicit operator bool() const { return data != nullptr; }
};

}  // namespace fathom::engine::cuda
