#include "engine/cuda/hopper/tensor_map.h"

#include "engine/cuda/check.h"

namespace fathom::engine::cuda::hopper {
namespace {

using Encoder = decltype(&cuTensorMapEncodeTiled);

/// The driver's function, obtained from the runtime: the module does not link the driver library.
Encoder find_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                         cudaEnableDefault, &found),
        "tensor map");
  if (found != cudaDriverEntryPointSuccess) throw DeviceError("CUDA: the driver knows no TMA");
  return reinterpret_cast<Encoder>(function);
}

}  // namespace

CUtensorMap make_tensor_map(const void* data, const TensorMapSpec& spec) {
  CUtensorMap map{};
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  static const Encoder encode = find_encoder();
  if (encode(&map, spec.type, static_cast<cuuint32_t>(spec.rank), const_cast<void*>(data),
             spec.sizes, spec.strides, spec.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, spec.swizzle,
             spec.promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
    throw DeviceError("CUDA: the driver refuses a tensor map");
  }
  return map;
}

CUtensorMap make_tensor_map(const void* data, std::int64_t rows, std::int64_t cols, int box_rows,
                            bool f32) {
  const int bytes = f32 ? 4 : 2;
  TensorMapSpec spec;
  if (f32) spec.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  spec.sizes[0] = static_cast<cuuint64_t>(cols);
  spec.sizes[1] = static_cast<cuuint64_t>(rows);
  spec.strides[0] = static_cast<cuuint64_t>(cols * bytes);
  spec.box[0] = static_cast<cuuint32_t>(128 / bytes);
  spec.box[1] = static_cast<cuuint32_t>(box_rows);
  return make_tensor_map(data, spec);
}

}  // namespace fathom::engine::cuda::hopper
