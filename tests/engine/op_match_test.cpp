// match: every op of the CPU backend against the reference, on every instruction set this machine
// has. invariance: repeated runs and other thread counts.
#include <gtest/gtest.h>

#include "engine/cpu/cpu_executor.h"
#include "engine/op_case.h"
#include "engine/ref/ref_executor.h"

namespace fathom::engine {
namespace {

class OpMatch : public testing::TestWithParam<std::tuple<OpCase, Isa>> {};

TEST_P(OpMatch, AgreesWithTheReference) {
  const auto& [op_case, isa] = GetParam();
  if (!has_isa(isa)) GTEST_SKIP() << "this processor has no " << name_of(isa);
  const BuiltCase built(op_case);
  RefExecutor reference(built.plan);
  CpuExecutor cpu(built.plan, {.threads = 2, .isa = isa});
  const auto expected = everything(reference, op_case, built);
  const auto actual = everything(cpu, op_case, built);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_LE(distance(expected[k], actual[k]), 2e-6 * norm_of(expected[k]) + 1e-7)
        << "value " << k;
  }
}

TEST_P(OpMatch, RepeatsBitForBitAndDoesNotDependOnThreads) {
  const auto& [op_case, isa] = GetParam();
  if (!has_isa(isa)) GTEST_SKIP() << "this processor has no " << name_of(isa);
  const BuiltCase built(op_case);
  CpuExecutor first(built.plan, {.threads = 1, .isa = isa});
  CpuExecutor again(built.plan, {.threads = 1, .isa = isa});
  CpuExecutor three(built.plan, {.threads = 3, .isa = isa});
  const auto expected = everything(first, op_case, built);
  EXPECT_EQ(expected, everything(again, op_case, built));
  // At these sizes oneDNN does not split sums over threads, so even GEMMs are the same.
  EXPECT_EQ(expected, everything(three, op_case, built));
}

INSTANTIATE_TEST_SUITE_P(Ops, OpMatch,
                         testing::Combine(testing::ValuesIn(op_cases()),
                                          testing::Values(Isa::portable, Isa::avx2, Isa::avx512,
                                                          Isa::avx512bf16)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  name_of(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace fathom::engine
