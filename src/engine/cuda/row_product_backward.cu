#include "engine/cuda/row_product_kernel.cuh"

namespace fathom::engine::cuda::rows {

Kernel backward_kernel_for(int nb, bool streamed) {
  return kernel_for<true>(nb, streamed);
}

}  // namespace fathom::engine::cuda::rows
