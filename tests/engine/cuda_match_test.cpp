// match and invariance of the CUDA backend over the same case table as the others. Skipped where
// there is no GPU.
#include <gtest/gtest.h>

#include "engine/device.h"
#include "engine/op_case.h"
#include "engine/ref/ref_executor.h"
#include "scratch_folder.h"

namespace fathom::engine {
namespace {

class CudaOps : public testing::TestWithParam<OpCase> {
 protected:
  void SetUp() override {
    std::string why = "the driver sees no GPU";
    module_ = find_cuda_module(&why);
    if (module_ == nullptr || module_->device_count() == 0) GTEST_SKIP() << "no CUDA: " << why;
  }
  const CudaModule* module_ = nullptr;
};

TEST_P(CudaOps, AgreesWithTheReference) {
  const BuiltCase built(GetParam());
  RefExecutor reference(built.plan);
  const auto cuda = module_->make_executor(built.plan, {});
  const auto expected = everything(reference, GetParam(), built);
  const auto actual = everything(*cuda, GetParam(), built);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_LE(distance(expected[k], actual[k]), 5e-6 * norm_of(expected[k]) + 1e-7)
        << "value " << k;
  }
}

TEST_P(CudaOps, GraphsAndRepeatsGiveTheSameBits) {
  const BuiltCase built(GetParam());
  // Executors that share a cache of product algorithms take the same ones.
  const ScratchFolder folder;
  const std::string cache = folder / "products.txt";
  const auto eager = module_->make_executor(built.plan, {0, false, cache});
  const auto graph = module_->make_executor(built.plan, {0, true, cache});
  const auto expected = everything(*eager, GetParam(), built);
  EXPECT_EQ(expected, everything(*eager, GetParam(), built));
  // The first run of a program is eager; from the second on it is a graph.
  EXPECT_EQ(expected, everything(*graph, GetParam(), built));
  EXPECT_EQ(expected, everything(*graph, GetParam(), built));
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaOps, testing::ValuesIn(op_cases()),
                         [](const auto& test) { return test.param.name; });

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
