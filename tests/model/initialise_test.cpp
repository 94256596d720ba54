// Initial values are the same whoever draws them.
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

#include "engine/cuda/module.h"
#include "engine/device.h"
#include "model/transformer.h"

namespace fathom::model {
namespace {

std::unique_ptr<const Transformer> wide_model() {
  ModelSpec spec;
  spec.width = 512;
  spec.heads = 8;
  spec.context = 16;
  spec.parametrisation = Parametrisation::mup;  // values of another deviation than queries and keys
  return build_transformer(spec, {});
}

// Eight times as many layers take about eight times as long; were it quadratic, 64 times.
TEST(BuildTransformer, TakesTimeLinearInTheLayers) {
  const auto ticks = [](std::int64_t layers) {
    ModelSpec spec;
    spec.layers = layers;
    spec.width = 16;
    spec.heads = 1;
    spec.context = 16;
    const std::clock_t begin = std::clock();
    EXPECT_FALSE(build_transformer(spec, {})->parameters.empty());
    return static_cast<double>(std::clock() - begin);
  };
  ticks(20);
  EXPECT_LT(ticks(1600), 25 * ticks(200));
}

TEST(InitialValues, DoNotDependOnTheNumberOfThreads) {
  const auto model = wide_model();
  for (const Parameter& parameter : model->parameters) {
    if (parameter.name.find("sub.0") == std::string::npos) continue;
    const auto alone = initial_values(*model, parameter, 3, 1);
    for (const unsigned threads : {2u, 5u}) {
      EXPECT_EQ(alone, initial_values(*model, parameter, 3, threads)) << parameter.name;
    }
    EXPECT_EQ(alone, initial_values(*model, parameter, 3)) << parameter.name;
  }
}

TEST(InitialValues, HaveTheDeviationAskedFor) {
  const auto model = wide_model();
  const Parameter& parameter = model->parameters.front();  // the token table
  double squares = 0;
  const auto values = initial_values(*model, parameter, 3);
  for (const float value : values) squares += static_cast<double>(value) * value;
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
  EXPECT_NEAR(deviation / parameter.scaling.init_std, 1, 0.01);
}

TEST(InitialValues, CudaDrawsTheSameBits) {
  std::string why = "the driver sees no GPU";
  const engine::CudaModule* module = engine::find_cuda_module(&why);
  if (module == nullptr || module->device_count() == 0) GTEST_SKIP() << "no CUDA: " << why;
  const auto model = wide_model();
  const auto executor = module->make_executor(model->plan, {});
  initialise(*model, *executor, 3);
  for (const Parameter& parameter : model->parameters) {
    const auto expected = initial_values(*model, parameter, 3);
    std::vector<float> drawn(expected.size());
    executor->read(parameter.id, drawn);
    std::size_t differing = 0;
    for (std::size_t i = 0; i < drawn.size(); ++i) differing += drawn[i] != expected[i];
    EXPECT_EQ(differing, 0u) << parameter.name << " of " << drawn.size();
  }
}

}  // namespace
}  // namespace fathom::model
