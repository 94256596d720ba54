#include "engine/cuda/gemm/gemm_norm.h"

#include <algorithm>

#include "engine/cuda/check.h"
#include "engine/cuda/gemm/gemm_norm_kernel.cuh"
#include "engine/cuda/hopper/tensor_map.h"

namespace fathom::engine::cuda {
namespace {

using namespace gemm_norm;

constexpr int kMostColumns = 256, kLeastChunks = 3;

int blocks_of(std::int64_t size) {
  return static_cast<int>((size + 63) / 64);
}

/// The map of an absent operand is never used.
CUtensorMap map_of(const void* data, std::int64_t rows, std::int64_t cols, int box_rows,
                   bool f32 = false) {
  return data == nullptr ? CUtensorMap{} : make_tensor_map(data, rows, cols, box_rows, f32);
}

/// bf16 with the rows of each group of 16 in the order that gemm_norm_epilogue_forward.cuh needs:
/// row 4 q + 2 u + e of the matrix is row 8 u + 2 q + e of the tile.
CUtensorMap permuted_map(const void* data, std::int64_t rows, std::int64_t cols, int box_rows) {
  const auto row = static_cast<cuuint64_t>(cols) * 2;
  return make_tensor_map(
      data, {.rank = 5,
             .sizes = {static_cast<cuuint64_t>(cols), 2, 4, 2, static_cast<cuuint64_t>(rows) / 16},
             .strides = {row, 4 * row, 2 * row, 16 * row},
             .box = {64, 2, 4, 2, static_cast<cuuint32_t>(box_rows / 16)}});
}

int sums_of(const LinearNormShape& shape) {
  return !shape.backward ? 0 : shape.branch_sums ? 3 : 2;
}

/// Bytes of shared memory without the rings of chunks.
int bare_bytes(const LinearNormShape& shape, const GemmNormVariant& variant) {
  const int nb = blocks_of(shape.width);
  return tail_bytes(nb, sums_of(shape)) + (variant.streamed()
                                               ? variant.stages * stage_bytes(nb)
                                               : blocks_of(shape.depth) * weight_bytes(nb));
}

Kernel kernel_of(const LinearNormShape& shape, const GemmNormVariant& variant) {
  const int nb = blocks_of(shape.width);
  return shape.backward ? backward_kernel_for(nb, variant.streamed())
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

std::string key_of(const LinearNormShape& shape) {
  return "normed " + std::to_string(shape.rows) + "x" + std::to_string(shape.width) + "x" +
         std::to_string(shape.depth) + (shape.backward ? " back" : " on") +
         (shape.branch_sums ? " 3" : "") + (shape.branch ? " branch" : "");
}

std::string GemmNormVariant::name() const {
  return (streamed() ? "streamed by " + std::to_string(cluster) + " " + std::to_string(stages)
                     : "resident") +
         " " + std::to_string(chunks);
}

std::vector<GemmNormVariant> GemmNorm::variants(const LinearNormShape& shape, const Gpu& gpu) {
  const bool fits = shape.depth % 8 == 0 && shape.width % 16 == 0 && shape.width <= kMostColumns &&
                    shape.rows < (1 << 30);
  if (!gpu.hopper || !fits) return {};
  std::vector<GemmNormVariant> found;
  const auto add = [&](GemmNormVariant variant) {
    if (kernel_of(shape, variant) == nullptr) return;
    const int left = kSharedBytes - bare_bytes(shape, variant);
    variant.chunks = std::min(kMostChunks, left / (kGroups * kChunkBytes));
    if (left >= 0 && variant.chunks >= kLeastChunks) found.push_back(variant);
  };
  add({});
  // Stages help more than chunks; clusters of four leave twelve multiprocessors idle.
  GemmNormVariant variant{.cluster = 2, .stages = kMostStages};
  const int chunks = kGroups * kLeastChunks * kChunkBytes;
  while (variant.stages > 2 && bare_bytes(shape, variant) + chunks > kSharedBytes) --variant.stages;
  add(variant);
  return found;
}

GemmNorm::GemmNorm(const LinearNormShape& shape, const GemmNormOperands& operands,
                   const GemmNormVariant& variant, const Gpu& gpu) {
  const int nb = blocks_of(shape.width), share = std::max(1, variant.cluster);
  args_.a = map_of(operands.a, shape.rows, shape.depth, 64);
  args_.b = shape.backward ? map_of(operands.b, shape.depth, shape.width, kBlock / share)
                           : permuted_map(operands.b, shape.width, shape.depth, nb * 64 / share);
  const std::int64_t m = shape.rows, d = shape.width;
  args_.stream = map_of(shape.backward ? operands.r : operands.x, m, d, 64, true);
  args_.incoming = map_of(operands.incoming, m, d, 64);
  args_.r = map_of(operands.r, m, d, 64, true);
  args_.y = map_of(operands.y, m, d, 64);
  args_.dx = map_of(operands.dx, m, d, 64);
  args_.d_branch = map_of(operands.d_branch, m, d, 64);
  args_.given = operands;
  args_.rows = static_cast<int>(m);
  args_.columns = static_cast<int>(d);
  args_.tiles = blocks_of(m);
  args_.k_blocks = blocks_of(shape.depth);
  args_.chunks = variant.chunks;
  args_.cluster = variant.cluster;
  args_.stages = variant.stages;
  args_.sums = sums_of(shape);
  args_.rms = shape.rms;
  kernel_ = kernel_of(shape, variant);
  threads_ = (kGroups + 1) * 128;
  bytes_ = bare_bytes(shape, variant) + kGroups * variant.chunks * kChunkBytes;
  // An attribute of the kernel, not of the launch: variants share a kernel, so set the maximum.
  check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
        "shared memory of a GEMM");
  int most = gpu.multiprocessors;
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

void GemmNorm::run(float* partial, cudaStream_t stream) const {
  GemmNormArgs args = args_;
  args.partial = partial;
  cudaLaunchAttribute attribute{};
  const cudaLaunchConfig_t config =
      launch_config(blocks_, threads_, bytes_, std::max(1, args_.cluster), attribute, stream);
  check(cudaLaunchKernelEx(&config, kernel_, args), "GEMM with a norm");
}

}  // namespace fathom::engine::cuda
