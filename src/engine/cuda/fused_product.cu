#include "engine/cuda/fused_product.h"

#include <algorithm>

#include "engine/cuda/check.h"
#include "engine/cuda/fused_product_resident.cuh"
#include "engine/cuda/fused_product_streamed.cuh"

namespace fathom::engine::cuda {
namespace {

using namespace fused;

constexpr int kSharedLimit = 232448;  // of a block on sm_90
constexpr int kStreamedK = 256;       // the least
static_assert(streamed_bytes(2, 4) <= kSharedLimit);

using Kernel = void (*)(FusedArgs);

template <ActivationKind kKind>
Kernel forward_kernel(const FusedVariant& variant) {
  if (variant.streamed) return streamed_kernel<false, kKind>;
  return variant.groups == 4 ? resident_kernel<false, kKind, 4> : resident_kernel<false, kKind, 3>;
}

/// The way back knows the activation by its slopes only.
Kernel backward_kernel(const FusedVariant& variant) {
  constexpr auto kAny = ActivationKind::relu;
  return variant.streamed ? streamed_kernel<true, kAny> : resident_kernel<true, kAny, 2>;
}

Kernel kernel_for(const FusedSpec& spec, const FusedVariant& variant) {
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

/// bf16 [rows, cols] in tiles of 64 columns (128 bytes, swizzled) and `tile_rows` rows.
CUtensorMap tensor_map(const void* data, std::int64_t rows, std::int64_t cols, int tile_rows) {
  CUtensorMap map{};
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(cols) * 2};
  const cuuint32_t box[2] = {64, static_cast<cuuint32_t>(tile_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult status = tensor_map_encoder()(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), sizes, strides, box,
      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) throw DeviceError("CUDA: no tensor map for a product");
  return map;
}

int k_blocks_of(const FusedSpec& spec) {
  return static_cast<int>((spec.k + kBlock - 1) / kBlock);
}

}  // namespace

std::string FusedSpec::name() const {
  return "activated " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
         (backward ? " back " : " on ") + std::to_string(static_cast<int>(kind));
}

std::string FusedVariant::name() const {
  return (streamed ? "streamed " : "resident ") + std::to_string(groups) + " " +
         std::to_string(slots) + " " + std::to_string(stages);
}

std::vector<FusedVariant> FusedProduct::variants(const FusedSpec& spec) {
  int device = 0, major = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const bool fits = spec.m % kRows == 0 && spec.n % kColumns == 0 && spec.k % 8 == 0 &&
                    spec.n <= std::int64_t{multiprocessors} * kColumns && spec.m < (1 << 30);
  if (major != 9 || !fits || spec.kind == ActivationKind::swiglu) return {};
  if (tensor_map_encoder() == nullptr) return {};
  std::vector<FusedVariant> found;
  // Forward there is more work on the results: more warpgroups to share it.
  for (const int groups : spec.backward ? std::vector{2} : std::vector{3, 4}) {
    const int left = kSharedLimit - resident_bytes(k_blocks_of(spec), groups, 1, 0);
    const int stages = std::min(kMostStages, left / (groups * kChunkBytes));
    if (left > 0 && stages >= 3) found.push_back({groups, 1, stages, false});
  }
  if (spec.k >= kStreamedK) found.push_back({2, 2, 4, true});
  return found;
}

FusedProduct::FusedProduct(const FusedSpec& spec, const FusedOperands& operands,
                           const FusedVariant& variant, int multiprocessors) {
  const int columns = variant.streamed ? kWideColumns : kColumns;
  const int rows = variant.streamed ? 2 * kRows : kRows;
  args_.a = tensor_map(operands.a, spec.m, spec.k, rows);
  args_.b = spec.backward ? tensor_map(operands.b, spec.k, spec.n, kBlock)
                          : tensor_map(operands.b, spec.n, spec.k, columns);
  args_.out = tensor_map(operands.out, spec.m, spec.n, kRows / 4);
  args_.bias = operands.bias;
  args_.slopes = static_cast<uint4*>(operands.slopes);
  args_.tiles = static_cast<int>(spec.m / kRows);
  args_.columns = static_cast<int>(spec.n);
  args_.column_tiles = static_cast<int>((spec.n + columns - 1) / columns);
  args_.k_blocks = k_blocks_of(spec);
  args_.stages = variant.stages;
  args_.slots = variant.slots;
  const int most = (args_.tiles + variant.groups - 1) / variant.groups;  // that find work
  parts_ = std::clamp(multiprocessors / args_.column_tiles, 1, most);
  threads_ = (variant.groups + 1) * 128;
  bytes_ = variant.streamed
               ? streamed_bytes(variant.slots, variant.stages)
               : resident_bytes(args_.k_blocks, variant.groups, variant.slots, variant.stages);
  kernel_ = kernel_for(spec, variant);
  // A property of the kernel, not of the launch: variants that share a kernel need the most.
  check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedLimit),
        "shared memory of a product");
}

void FusedProduct::run(float* partial, cudaStream_t stream) const {
  FusedArgs args = args_;
  args.partial = partial;
  const auto blocks = static_cast<unsigned>(parts_ * args_.column_tiles);
  kernel_<<<blocks, threads_, bytes_, stream>>>(args);
  check_launch("product");
}

}  // namespace fathom::engine::cuda
