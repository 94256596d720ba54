#include "engine/cuda/row_product_kernel.cuh"

namespace fathom::engine::cuda::rows {

Kernel forward_kernel_for(int nb, int span) {
  return kernel_for<false>(nb, span);
}

}  // namespace fathom::engine::cuda::rows
