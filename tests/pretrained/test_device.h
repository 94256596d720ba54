// The devices that tests of a GPU's forward pass run on: plain loops everywhere, and the CUDA
// module with split and with plain f32 products where there is a GPU.
#pragma once

#include <gtest/gtest.h>

#include "engine/cuda/module.h"
#include "engine/gpu_path.h"
#include "pretrained/plain_inference.h"

namespace fathom::pretrained {

enum class TestDevice : std::uint8_t { plain, cuda, cuda_generic };
constexpr auto enum_names(TestDevice) {
  return std::array{"Plain", "Cuda", "CudaGeneric"};
}
inline const auto kTestDevices =
    testing::Values(TestDevice::plain, TestDevice::cuda, TestDevice::cuda_generic);

/// Why this device cannot be tested here; empty where it can.
inline std::string why_not(TestDevice device) {
  return device == TestDevice::plain ? "" : engine::why_no_gpu();
}

inline std::unique_ptr<engine::Inference> make_inference(TestDevice device) {
  if (device == TestDevice::plain) return std::make_unique<PlainInference>();
  const engine::GpuPath path =
      device == TestDevice::cuda ? engine::GpuPath::own : engine::GpuPath::generic;
  return engine::cuda_module().make_inference(engine::options_for(path));
}

inline std::string device_name(const testing::TestParamInfo<TestDevice>& info) {
  return name_of(info.param);
}

}  // namespace fathom::pretrained
