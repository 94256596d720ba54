#include "engine/cuda/gemm/gemm_activation.h"

#include <algorithm>

#include "engine/cuda/check.h"
#include "engine/cuda/gemm/gemm_activation_resident.cuh"
#include "engine/cuda/gemm/gemm_activation_streamed.cuh"
#include "engine/cuda/hopper/tensor_map.h"

namespace fathom::engine::cuda {
namespace {

using namespace gemm_activation;

constexpr int kStreamedK = 256;  // at least
static_assert(streamed_bytes(2, 4) <= hopper::kSharedBytes);

using Kernel = void (*)(GemmActivationArgs);

template <ActivationKind kKind>
Kernel forward_kernel(const GemmActivationVariant& variant) {
  if (variant.streamed) return streamed_kernel<false, kKind>;
  return variant.groups == 4 ? resident_kernel<false, kKind, 4> : resident_kernel<false, kKind, 3>;
}

/// The backward sees the activation only through its slopes.
Kernel backward_kernel(const GemmActivationVariant& variant) {
  constexpr auto kAny = ActivationKind::relu;
  return variant.streamed ? streamed_kernel<true, kAny> : resident_kernel<true, kAny, 2>;
}

Kernel kernel_for(const GemmActivationSpec& spec, const GemmActivationVariant& variant) {
  if (spec.backward) return backward_kernel(variant);
  switch (spec.kind) {
    case ActivationKind::relu:
      return forward_kernel<ActivationKind::relu>(variant);
    case ActivationKind::gelu:
      return forward_kernel<ActivationKind::gelu>(variant);
    case ActivationKind::gelu_tanh:
      return forward_kernel<ActivationKind::gelu_tanh>(variant);
    case ActivationKind::swiglu:
      break;
  }
  return nullptr;
}

int k_blocks_of(const GemmActivationSpec& spec) {
  return static_cast<int>((spec.k + kBlock - 1) / kBlock);
}

}  // namespace

std::string GemmActivationSpec::name() const {
  return "activated " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
         (backward ? " back " : " on ") + std::to_string(static_cast<int>(kind));
}

std::string GemmActivationVariant::name() const {
  return (streamed ? "streamed " : "resident ") + std::to_string(groups) + " " +
         std::to_string(slots) + " " + std::to_string(stages);
}

std::vector<GemmActivationVariant> GemmActivation::variants(const GemmActivationSpec& spec,
                                                            const Gpu& gpu) {
  const bool fits = spec.m % kRows == 0 && spec.n % kColumns == 0 && spec.k % 8 == 0 &&
                    spec.n <= std::int64_t{gpu.multiprocessors} * kColumns && spec.m < (1 << 30);
  if (!gpu.hopper || !fits || spec.kind == ActivationKind::swiglu) return {};
  std::vector<GemmActivationVariant> found;
  // The forward epilogue has more work to do: more warpgroups share it.
  for (const int groups : spec.backward ? std::vector{2} : std::vector{3, 4}) {
    const int left = hopper::kSharedBytes - resident_bytes(k_blocks_of(spec), groups, 1, 0);
    const int stages = std::min(kMostStages, left / (groups * kChunkBytes));
    if (left > 0 && stages >= 3) found.push_back({groups, 1, stages, false});
  }
  if (spec.k >= kStreamedK) found.push_back({2, 2, 4, true});
  return found;
}

GemmActivation::GemmActivation(const GemmActivationSpec& spec,
                               const GemmActivationOperands& operands,
                               const GemmActivationVariant& variant, const Gpu& gpu) {
  const int columns = variant.streamed ? kWideColumns : kColumns;
  const int rows = variant.streamed ? 2 * kRows : kRows;
  args_.a = hopper::make_tensor_map(operands.a, spec.m, spec.k, rows);
  args_.b = spec.backward ? hopper::make_tensor_map(operands.b, spec.k, spec.n, kBlock)
                          : hopper::make_tensor_map(operands.b, spec.n, spec.k, columns);
  args_.out = hopper::make_tensor_map(operands.out, spec.m, spec.n, kRows / 4);
  args_.bias = operands.bias;
  args_.slopes = static_cast<uint4*>(operands.slopes);
  args_.tiles = static_cast<int>(spec.m / kRows);
  args_.columns = static_cast<int>(spec.n);
  args_.column_tiles = static_cast<int>((spec.n + columns - 1) / columns);
  args_.k_blocks = k_blocks_of(spec);
  args_.stages = variant.stages;
  args_.slots = variant.slots;
  const int most = (args_.tiles + variant.groups - 1) / variant.groups;  // that have work
  parts_ = std::clamp(gpu.multiprocessors / args_.column_tiles, 1, most);
  threads_ = (variant.groups + 1) * 128;
  bytes_ = variant.streamed
               ? streamed_bytes(variant.slots, variant.stages)
               : resident_bytes(args_.k_blocks, variant.groups, variant.slots, variant.stages);
  kernel_ = kernel_for(spec, variant);
  // An attribute of the kernel, not of the launch: variants share a kernel, so set the maximum.
  check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             hopper::kSharedBytes),
        "shared memory of a GEMM");
}

void GemmActivation::run(float* partial, cudaStream_t stream) const {
  GemmActivationArgs args = args_;
  args.partial = partial;
  const auto blocks = static_cast<unsigned>(parts_ * args_.column_tiles);
  kernel_<<<blocks, threads_, bytes_, stream>>>(args);
  check_launch("GEMM with an activation");
}

}  // namespace fathom::engine::cuda
