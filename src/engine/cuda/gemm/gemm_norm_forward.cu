#include "engine/cuda/gemm/gemm_norm_kernel.cuh"

namespace fathom::engine::cuda::gemm_norm {

Kernel forward_kernel_for(int nb, bool streamed) {
  return kernel_for<false>(nb, streamed);
}

}  // namespace fathom::engine::cuda::gemm_norm
