#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"
#include "engine/ops/dropout/dropout_mask.h"

namespace fathom::engine::cuda {
namespace {

/// A thread takes the four elements that share one Philox block.
__global__ void dropout_kernel(Operand x, Operand y, DropoutMask mask, const DeviceScalars* scalars,
                               std::int64_t size, bool accumulate) {
  const std::uint64_t draw = scalars->draw;
  const float kept = 1.0f / (1.0f - mask.probability);
  const double threshold = static_cast<double>(mask.probability) * 4294967296.0;
  for (std::int64_t block = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; block * 4 < size;
       block += std::int64_t{gridDim.x} * blockDim.x) {
    const auto words = dropout_words(mask, draw, block);
    for (int j = 0; j < 4 && block * 4 + j < size; ++j) {
      Pack<1> value = load<1>(x, block * 4 + j);
      value.v[0] *= static_cast<double>(words[static_cast<std::size_t>(j)]) >= threshold ? kept : 0;
      put<1>(y, block * 4 + j, value, accumulate);
    }
  }
}

BoundOp bound(const Context& context, TensorId x, TensorId y, const DropoutMask& mask,
              bool accumulate) {
  return [from = context.operand(x), to = context.operand(y), mask, scalars = context.scalars,
          size = context.tensor(y).size(), accumulate, gpu = context.gpu](cudaStream_t stream) {
    const int grid = blocks_for((size + 3) / 4, 256, gpu, 16);
    dropout_kernel<<<grid, 256, 0, stream>>>(from, to, mask, scalars, size, accumulate);
    check_launch("dropout");
  };
}

}  // namespace

BoundOp bind(const Dropout& op, const Context& context) {
  return bound(context, op.x, op.y, op.mask, false);
}

BoundOp bind(const DropoutBackward& op, const Context& context) {
  return bound(context, op.dy, op.dx, op.mask, op.mode == GradMode::accumulate);
}

}  // namespace fathom::engine::cuda
