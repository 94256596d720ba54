// One thread block for each group; sums are taken in a fixed order.
#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"

namespace fathom::engine::cuda {
namespace {

constexpr int kProxThreads = 128;

struct Patch {  // a block of weights
  float* first;
  std::int64_t rows, cols, stride;
};

struct PatchRange {
  std::int64_t first, last;  // of the patches
  float strength;
};

template <class Visit>
__device__ void each_weight(const Patch* patches, const PatchRange& group, const Visit& visit) {
  for (std::int64_t p = group.first; p < group.last; ++p) {
    const Patch patch = patches[p];
    for (std::int64_t i = threadIdx.x; i < patch.rows * patch.cols; i += kProxThreads) {
      visit(patch.first[i / patch.cols * patch.stride + i % patch.cols]);
    }
  }
}

__global__ void __launch_bounds__(kProxThreads)
    shrink_length_kernel(const Patch* patches, const PatchRange* groups,
                         const DeviceScalars* scalars) {
  __shared__ double shared[33];
  const PatchRange group = groups[blockIdx.x];
  const double mass = static_cast<double>(scalars->learning_rate) * group.strength;
  double squares = 0;
  each_weight(patches, group, [&](float value) { squares += static_cast<double>(value) * value; });
  const double norm = sqrt(block_sum(squares, shared));
  const auto factor = static_cast<float>(norm <= mass ? 0 : 1 - mass / norm);
  each_weight(patches, group, [&](float& value) { value = factor == 0 ? 0 : value * factor; });
}

/// As on the processor (prox_cpu.cpp).
__global__ void __launch_bounds__(kProxThreads)
    level_down_kernel(const Patch* patches, const PatchRange* groups,
                      const DeviceScalars* scalars) {
  __shared__ double shared[33];
  const PatchRange group = groups[blockIdx.x];
  const double mass = static_cast<double>(scalars->learning_rate) * group.strength;
  double level = -1;
  double above = -1;
  for (double before = 0; above != before;) {  // the same for all threads
    before = above;
    double sum = 0;
    double count = 0;
    each_weight(patches, group, [&](float value) {
      const double size = fabs(static_cast<double>(value));
      if (size <= level) return;
      sum += size;
      count += 1;
    });
    above = block_sum(count, shared);
    sum = block_sum(sum, shared);
    if (above == 0) break;
    level = (sum - mass) / above;
    if (level <= 0) break;
  }
  const float limit = level <= 0 ? 0 : static_cast<float>(level);
  each_weight(patches, group,
              [&](float& value) { value = limit == 0 ? 0 : fminf(fmaxf(value, -limit), limit); });
}

}  // namespace

BoundOp bind(const Prox& op, const Context& context) {
  std::vector<Patch> patches;
  std::vector<PatchRange> groups;
  for (const ProxGroup& group : op.groups) {
    const auto begin = static_cast<std::int64_t>(patches.size());
    for (const ProxBlock& block : group.blocks) {
      const std::int64_t stride = context.tensor(block.parameter).cols;
      float* first = context.floats(block.parameter) + block.row * stride + block.col;
      patches.push_back({first, block.rows, block.cols, stride});
    }
    groups.push_back({begin, static_cast<std::int64_t>(patches.size()), group.strength});
  }
  return [patches = context.upload(patches), groups = context.upload(groups),
          scalars = context.scalars, count = static_cast<unsigned>(groups.size()),
          level = op.kind == ProxKind::linf1](cudaStream_t stream) {
    if (level) {
      level_down_kernel<<<count, kProxThreads, 0, stream>>>(patches, groups, scalars);
    } else {
      shrink_length_kernel<<<count, kProxThreads, 0, stream>>>(patches, groups, scalars);
    }
    check_launch("proximal step");
  };
}

}  // namespace fathom::engine::cuda
