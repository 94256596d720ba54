// Memory of f32 or bf16 as kernels take it.
//
// An operand's type is looked at when it is read: the branch is the same for a whole grid and costs
// nothing beside the memory access, and one kernel serves every mix of types.
#pragma once

#include <cuda_runtime_api.h>

namespace fathom::engine::cuda {

struct Operand {
  void* data = nullptr;
  bool bf16 = false;
  __host__ __device__ explicit operator bool() const { return data != nullptr; }
};

}  // namespace fathom::engine::cuda
