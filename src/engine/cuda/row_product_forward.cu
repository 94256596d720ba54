#include "engine/cuda/row_product_kernel.cuh"

namespace fathom::engine::cuda::rows {

Kernel forward_kernel_for(int nb, bool streamed) {
  return kernel_for<false>(nb, streamed);
}

}  // namespace fathom::engine::cuda::rows
