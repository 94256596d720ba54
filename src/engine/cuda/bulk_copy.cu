#include "engine/cuda/bulk_copy.cuh"

#include <cuda_runtime.h>

namespace fathom::engine::cuda {

TensorMapEncoder tensor_map_encoder() {
  static const auto encoder = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                                12000, cudaEnableDefault, &found);
    if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) {
      cudaGetLastError();  // no sticky error: other kernels serve
      function = nullptr;
    }
    return reinterpret_cast<TensorMapEncoder>(function);
  }();
  return encoder;
}

}  // namespace fathom::engine::cuda
