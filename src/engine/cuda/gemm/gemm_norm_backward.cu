#include "engine/cuda/gemm/gemm_norm_kernel.cuh"

namespace fathom::engine::cuda::gemm_norm {

Kernel backward_kernel_for(int nb, bool streamed) {
  return kernel_for<true>(nb, streamed);
}

}  // namespace fathom::engine::cuda::gemm_norm
