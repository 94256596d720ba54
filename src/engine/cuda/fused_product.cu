#include "engine/cuda/fused_product.h"

#include <algorithm>

#include "engine/cuda/check.h"
#include "engine/cuda/fused_product_resident.cuh"
#include "engine/cuda/fused_product_streamed.cuh"

namespace fathom::engine::cuda {
namespace {

using namespace fused;

constexpr int kSharedLimit = 232448;  // of a block on sm_90
constexpr int kMostK = 512, kStreamedK = 256;
constexpr int kLeastStages = 4;  // fewer were slower in every measurement
static_assert(streamed_bytes(2, 3) <= kSharedLimit && streamed_bytes(1, 4) <= kSharedLimit);

using Kernel = void (*)(FusedArgs);

template <bool kBackward, ActivationKind kKind>
Kernel kernel_for(const FusedVariant& variant) {
  if (variant.streamed) return streamed_kernel<kBackward, kKind>;
  return variant.groups == 3 ? resident_kernel<kBackward, kKind, 3>
                             : resident_kernel<kBackward, kKind, 2>;
}

template <bool kBackward>
Kernel kernel_for(ActivationKind kind, const FusedVariant& variant) {
  switch (kind) {
    case ActivationKind::relu:
      return kernel_for<kBackward, ActivationKind::relu>(variant);
    case ActivationKind::gelu:
      return kernel_for<kBackward, ActivationKind::gelu>(variant);
    case ActivationKind::gelu_tanh:
      return kernel_for<kBackward, ActivationKind::gelu_tanh>(variant);
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
  return (streamed ? "streamed " : "") + std::to_string(groups) + " " + std::to_string(buffers) +
         " " + std::to_string(stages);
}

std::vector<FusedVariant> FusedProduct::variants(const FusedSpec& spec) {
  int device = 0, major = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const bool fits = spec.k % 8 == 0 && spec.n % 8 == 0 &&
                    spec.n <= std::int64_t{multiprocessors} * kColumns && spec.m < (1 << 30);
  if (major != 9 || !fits || spec.kind == ActivationKind::swiglu) return {};
  if (tensor_map_encoder() == nullptr) return {};
  std::vector<FusedVariant> found;
  for (int groups = 2; groups <= kMostGroups && spec.k <= kMostK; ++groups) {
    // Forward, a second buffer is all that helps.
    for (int buffers = spec.backward ? 3 : 2; buffers > 0; --buffers) {
      const int left = kSharedLimit - resident_bytes(k_blocks_of(spec), groups, buffers, 0);
      const int stages = std::min(kMostStages, left / (groups * kChunkBytes));
      if (stages >= kLeastStages) found.push_back({groups, buffers, stages, false});
    }
  }
  if (spec.k >= kStreamedK) {
    found.push_back({2, 2, 3, true});
    if (!spec.backward) found.push_back({2, 1, 4, true});
  }
  return found;
}

FusedProduct::FusedProduct(const FusedSpec& spec, const FusedOperands& operands,
                           const FusedVariant& variant, int multiprocessors) {
  args_.a = tensor_map(operands.a, spec.m, spec.k, kRows);
  args_.b = spec.backward ? tensor_map(operands.b, spec.k, spec.n, kBlock)
                          : tensor_map(operands.b, spec.n, spec.k, kColumns);
  args_.pre = tensor_map(operands.pre, spec.m, spec.n, kRows);
  args_.out = tensor_map(operands.out, spec.m, spec.n, kRows);
  args_.bias = operands.bias;
  args_.tiles = static_cast<int>((spec.m + kRows - 1) / kRows);
  args_.columns = static_cast<int>(spec.n);
  const int columns = variant.streamed ? 2 * kColumns : kColumns;
  args_.column_tiles = static_cast<int>((spec.n + columns - 1) / columns);
  args_.k_blocks = k_blocks_of(spec);
  args_.stages = variant.stages;
  args_.buffers = variant.buffers;
  const int most = (args_.tiles + variant.groups - 1) / variant.groups;  // tiles of a block's own
  parts_ = std::clamp(multiprocessors / args_.column_tiles, 1, most);
  threads_ = variant.streamed ? 384 : variant.groups * 160;
  bytes_ = variant.streamed
               ? streamed_bytes(variant.buffers, variant.stages)
               : resident_bytes(args_.k_blocks, variant.groups, variant.buffers, variant.stages);
  kernel_ =
      spec.backward ? kernel_for<true>(spec.kind, variant) : kernel_for<false>(spec.kind, variant);
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
