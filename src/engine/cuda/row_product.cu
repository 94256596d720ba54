#include "engine/cuda/row_product.h"

#include <algorithm>

#include "engine/cuda/check.h"
#include "engine/cuda/row_product_kernel.cuh"

namespace fathom::engine::cuda {
namespace {

using namespace rows;

constexpr int kSharedLimit = 232448;  // of a block on sm_90
constexpr int kMostColumns = 256, kLeastChunks = 3;

int blocks_of(std::int64_t size) {
  return static_cast<int>((size + 63) / 64);
}

CUtensorMap tensor_map(const void* data, CUtensorMapDataType type, int rank,
                       const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box) {
  CUtensorMap map{};
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  const CUresult status = tensor_map_encoder()(
      &map, type, static_cast<cuuint32_t>(rank), const_cast<void*>(data), sizes, strides, box,
      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) throw DeviceError("CUDA: no tensor map for a product");
  return map;
}

/// [rows, cols] in tiles of 128 bytes of columns (swizzled) and `tile_rows` rows. What is absent is
/// never asked for.
CUtensorMap plain_map(const void* data, std::int64_t rows, std::int64_t cols, int tile_rows,
                      bool f32 = false) {
  if (data == nullptr) return {};
  const int size = f32 ? 4 : 2;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(cols * size)};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(128 / size),
                             static_cast<cuuint32_t>(tile_rows)};
  return tensor_map(data, f32 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                    2, sizes, strides, box);
}

/// bf16 with the rows of each group of 16 in the order that row_product_forward.cuh wants: row
/// 4 q + 2 u + e of the matrix is row 8 u + 2 q + e of the tile.
CUtensorMap turned_map(const void* data, std::int64_t rows, std::int64_t cols, int tile_rows) {
  const auto row = static_cast<cuuint64_t>(cols) * 2;
  const cuuint64_t sizes[5] = {static_cast<cuuint64_t>(cols), 2, 4, 2,
                               static_cast<cuuint64_t>(rows) / 16};
  const cuuint64_t strides[4] = {row, 4 * row, 2 * row, 16 * row};
  const cuuint32_t box[5] = {64, 2, 4, 2, static_cast<cuuint32_t>(tile_rows / 16)};
  return tensor_map(data, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 5, sizes, strides, box);
}

int sums_of(const RowSpec& spec) {
  return !spec.backward ? 0 : spec.branch_sums ? 3 : 2;
}

/// Of shared memory, less the rings of chunks.
int bare_bytes(const RowSpec& spec, const RowVariant& variant) {
  const int nb = blocks_of(spec.d);
  return tail_bytes(nb, sums_of(spec)) + (variant.streamed()
                                              ? variant.stages * stage_bytes(nb)
                                              : blocks_of(spec.k) * weight_bytes(nb));
}

Kernel kernel_of(const RowSpec& spec, const RowVariant& variant) {
  const int nb = blocks_of(spec.d);
  return spec.backward ? backward_kernel_for(nb, variant.streamed())
                       : forward_kernel_for(nb, variant.streamed());
}

cudaLaunchConfig_t launch_config(unsigned blocks, unsigned threads, int bytes, int cluster,
                                 cudaLaunchAttribute& attribute, cudaStream_t stream) {
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = cluster > 1 ? 1 : 0;
  return config;
}

}  // namespace

std::string RowSpec::name() const {
  return "normed " + std::to_string(m) + "x" + std::to_string(d) + "x" + std::to_string(k) +
         (backward ? " back" : " on") + (branch_sums ? " 3" : "");
}

std::string RowVariant::name() const {
  return (streamed() ? "streamed by " + std::to_string(cluster) + " " + std::to_string(stages)
                     : "resident") +
         " " + std::to_string(chunks);
}

std::vector<RowVariant> RowProduct::variants(const RowSpec& spec) {
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  const bool fits =
      spec.k % 8 == 0 && spec.d % 16 == 0 && spec.d <= kMostColumns && spec.m < (1 << 30);
  if (major != 9 || !fits || tensor_map_encoder() == nullptr) return {};
  std::vector<RowVariant> found;
  const auto add = [&](RowVariant variant) {
    if (kernel_of(spec, variant) == nullptr) return;
    const int left = kSharedLimit - bare_bytes(spec, variant);
    variant.chunks = std::min(kMostChunks, left / (kGroups * kChunkBytes));
    if (left >= 0 && variant.chunks >= kLeastChunks) found.push_back(variant);
  };
  add({});
  // Stages help more than chunks; clusters of four leave twelve multiprocessors idle.
  RowVariant variant{.cluster = 2, .stages = kMostStages};
  const int chunks = kGroups * kLeastChunks * kChunkBytes;
  while (variant.stages > 2 && bare_bytes(spec, variant) + chunks > kSharedLimit) --variant.stages;
  add(variant);
  return found;
}

RowProduct::RowProduct(const RowSpec& spec, const RowOperands& operands, const RowVariant& variant,
                       int multiprocessors) {
  const int nb = blocks_of(spec.d), share = std::max(1, variant.cluster);
  args_.a = plain_map(operands.a, spec.m, spec.k, 64);
  args_.b = spec.backward ? plain_map(operands.b, spec.k, spec.d, kBlock / share)
                          : turned_map(operands.b, spec.d, spec.k, nb * 64 / share);
  const std::int64_t m = spec.m, d = spec.d;
  args_.stream = plain_map(spec.backward ? operands.r : operands.x, m, d, 64, true);
  args_.incoming = plain_map(operands.incoming, m, d, 64);
  args_.r = plain_map(operands.r, m, d, 64, true);
  args_.y = plain_map(operands.y, m, d, 64);
  args_.dx = plain_map(operands.dx, m, d, 64);
  args_.d_branch = plain_map(operands.d_branch, m, d, 64);
  args_.given = operands;
  args_.rows = static_cast<int>(m);
  args_.columns = static_cast<int>(d);
  args_.tiles = blocks_of(m);
  args_.k_blocks = blocks_of(spec.k);
  args_.chunks = variant.chunks;
  args_.cluster = variant.cluster;
  args_.stages = variant.stages;
  args_.sums = sums_of(spec);
  args_.rms = spec.rms;
  kernel_ = kernel_of(spec, variant);
  threads_ = (kGroups + 1) * 128;
  bytes_ = bare_bytes(spec, variant) + kGroups * variant.chunks * kChunkBytes;
  // A property of the kernel, not of the launch: variants that share a kernel need the most.
  check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedLimit),
        "shared memory of a product");
  int most = multiprocessors;
  if (share > 1) {  // as many clusters as there is room for at once
    cudaLaunchAttribute attribute{};
    const cudaLaunchConfig_t config =
        launch_config(static_cast<unsigned>(share), threads_, bytes_, share, attribute, nullptr);
    int clusters = 0;
    check(cudaOccupancyMaxActiveClusters(&clusters, kernel_, &config), "clusters");
    most = std::max(1, clusters) * share;
  }
  const int wanted = (args_.tiles + kGroups - 1) / kGroups;
  blocks_ = static_cast<unsigned>(std::min(most, (wanted + share - 1) / share * share));
  args_.rounds = (wanted + static_cast<int>(blocks_) - 1) / static_cast<int>(blocks_);
}

void RowProduct::run(float* partial, cudaStream_t stream) const {
  RowArgs args = args_;
  args.partial = partial;
  cudaLaunchAttribute attribute{};
  const cudaLaunchConfig_t config =
      launch_config(blocks_, threads_, bytes_, std::max(1, args_.cluster), attribute, stream);
  check(cudaLaunchKernelEx(&config, kernel_, args), "product");
}

}  // namespace fathom::engine::cuda
