// match and invariance of the CUDA backend over the same case table as the others. Skipped where
// there is no GPU.
#include <gtest/gtest.h>

#include "engine/gpu_path.h"
#include "engine/op_case.h"
#include "engine/ref/ref_executor.h"
#include "scratch_folder.h"

namespace fathom::engine {
namespace {

class CudaOps : public testing::TestWithParam<std::tuple<OpCase, GpuPath>> {
 protected:
  CudaOps() : op_case_(std::get<0>(GetParam())), options_(options_for(std::get<1>(GetParam()))) {}
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    op_case_.target = cuda_target(options_);
  }
  OpCase op_case_;
  CudaOptions options_;
};

TEST_P(CudaOps, AgreesWithTheReference) {
  const BuiltCase built(op_case_);
  RefExecutor reference(built.plan);
  const auto cuda = cuda_module().make_executor(built.plan, options_);
  const auto expected = everything(reference, op_case_, built);
  const auto actual = everything(*cuda, op_case_, built);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_LE(distance(expected[k], actual[k]), 5e-6 * norm_of(expected[k]) + 1e-7)
        << "value " << k;
  }
}

TEST_P(CudaOps, GraphsAndRepeatsGiveTheSameBits) {
  const BuiltCase built(op_case_);
  // Executors that share a cache of GEMM algorithms take the same ones.
  const ScratchFolder folder;
  options_.gemm_cache = folder / "gemms.txt";
  options_.graphs = false;
  const auto eager = cuda_module().make_executor(built.plan, options_);
  options_.graphs = true;
  const auto graph = cuda_module().make_executor(built.plan, options_);
  const auto expected = everything(*eager, op_case_, built);
  EXPECT_EQ(expected, everything(*eager, op_case_, built));
  // The first run of a program is eager; from the second on it is a graph.
  EXPECT_EQ(expected, everything(*graph, op_case_, built));
  EXPECT_EQ(expected, everything(*graph, op_case_, built));
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaOps, testing::Combine(testing::ValuesIn(op_cases()), kGpuPaths),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  name_of(std::get<1>(test.param));
                         });

TEST(Device, AbsentCudaIsOneLine) {
  if (const CudaModule* module = find_cuda_module(nullptr); module && module->device_count() > 0) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  const BuiltCase built(op_cases().front());
  try {
    make_executor(built.plan, {.kind = DeviceKind::cuda});
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.exit_code(), 4);
    EXPECT_TRUE(std::string(error.what()).starts_with("no CUDA device: ")) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace fathom::engine
