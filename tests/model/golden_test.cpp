// Members of the family against PyTorch in double precision: gradients and ten training losses.
// tools/make_golden.py wrote the files and explains the hashed parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/json_text.h"
#include "engine/cpu/cpu_executor.h"
#include "engine/ref/ref_executor.h"
#include "model/spec_toml.h"
#include "model/transformer.h"

namespace fathom::model {
namespace {

using engine::Program;
using engine::TensorId;

std::vector<double> hashed(std::uint64_t stream, std::size_t count) {
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t z = stream + (i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    out[i] = static_cast<double>(z >> 40) / (1 << 23) - 1.0;
  }
  return out;
}

std::uint64_t name_hash(const std::string& name) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

struct Golden {
  nlohmann::json file;
  std::unique_ptr<const Transformer> model;

  Golden(const std::string& name, Precision precision) {
    file = read_json_file(FATHOM_SOURCE_DIR "/tests/golden/" + name + ".json");
    nlohmann::json spec = {{"layers", 2}, {"width", 16}, {"vocab", 23}, {"context", 12}};
    spec.update(file["spec"]);
    std::string toml;
    for (const auto& [key, value] : spec.items()) toml += key + " = " + value.dump() + "\n";
    TomlReader reader = TomlReader::from_text(toml, name);
    BuildOptions options;
    options.batch = 2;
    options.precision = precision;
    model = build_transformer(read_model_spec(reader), options);
  }

  void start(engine::Executor& executor) const {
    for (const Parameter& parameter : model->parameters) {
      const auto size = static_cast<std::size_t>(model->plan.tensor(parameter.id).size());
      const auto values = hashed(name_hash(parameter.name), size);
      std::vector<float> floats(size);
      for (std::size_t i = 0; i < size; ++i) {
        floats[i] = static_cast<float>((parameter.name.ends_with(".gain") ? 1.0 : 0.0) +
                                       0.2 * static_cast<double>(static_cast<float>(values[i])));
      }
      executor.write(parameter.id, floats);
    }
    executor.run(Program::refresh, {});
    const auto tokens = [&](std::uint64_t stream) {
      std::vector<std::int32_t> ids;
      for (const double v : hashed(stream, static_cast<std::size_t>(model->rows()))) {
        ids.push_back(
            static_cast<std::int32_t>((v + 1) / 2 * static_cast<double>(model->spec.vocab)));
      }
      return ids;
    };
    executor.write_tokens(model->tokens, tokens(1));
    executor.write_tokens(model->targets, tokens(2));
  }

  engine::StepScalars scalars(std::int64_t step) const {
    engine::StepScalars scalars;
    scalars.loss_scale = 1.0f / static_cast<float>(model->rows());
    scalars.learning_rate = 0.01f;
    scalars.clip_norm = 1;
    scalars.step = step;
    return scalars;
  }
};

void expect_gradients(const Golden& golden, engine::Executor& executor, double tolerance) {
  golden.start(executor);
  executor.run(Program::train, golden.scalars(1));
  EXPECT_EQ(golden.file["gradients"].size(), golden.model->parameters.size());
  for (const Parameter& parameter : golden.model->parameters) {
    ASSERT_TRUE(golden.file["gradients"].contains(parameter.name)) << parameter.name;
    const auto& expected = golden.file["gradients"][parameter.name];
    const auto size = expected["size"].get<std::size_t>();
    std::vector<float> gradient(size);
    executor.read(golden.model->plan.gradient(parameter.id), gradient);
    const double norm = expected["norm"];
    // A gradient that is zero in exact arithmetic (a key bias under softmax) has no scale.
    const double allowed = tolerance * norm + 1e-8 * (1 + tolerance * 1e5);
    double square = 0;
    for (const float g : gradient) square += static_cast<double>(g) * g;
    EXPECT_NEAR(std::sqrt(square), norm, allowed) << parameter.name;
    for (std::size_t k = 0; k < 3; ++k) {
      const auto direction = hashed(name_hash(parameter.name) + k + 1, size);
      double projection = 0, length = 0;
      for (std::size_t i = 0; i < size; ++i) {
        projection += gradient[i] * direction[i];
        length += direction[i] * direction[i];
      }
      EXPECT_NEAR(projection, expected["projections"][k], allowed * std::sqrt(length))
          << parameter.name;
    }
    for (std::size_t k = 1; k <= 4; ++k) {
      EXPECT_NEAR(gradient[k * 2654435761u % size], expected["picks"][k - 1], allowed)
          << parameter.name;
    }
  }
}

void expect_losses(const Golden& golden, engine::Executor& executor, double tolerance) {
  golden.start(executor);
  for (std::int64_t step = 1; step <= 10; ++step) {
    executor.run(Program::train, golden.scalars(step));
    const float loss = read_scalar(executor, golden.model->loss);
    EXPECT_NEAR(loss, golden.file["losses"][static_cast<std::size_t>(step - 1)], tolerance)
        << "step " << step;
    executor.run(Program::update, golden.scalars(step));
  }
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, ReferenceGradients) {
  const Golden golden(GetParam(), Precision::f32);
  engine::RefExecutor executor(golden.model->plan);
  expect_gradients(golden, executor, 1e-6);
}

TEST_P(GoldenTest, CpuGradientsAndLosses) {
  const Golden golden(GetParam(), Precision::f32);
  engine::CpuExecutor executor(golden.model->plan, {.threads = 2});
  expect_gradients(golden, executor, 1e-5);
  engine::CpuExecutor trained(golden.model->plan, {.threads = 2});
  expect_losses(golden, trained, 1e-4);
}

TEST_P(GoldenTest, CpuBf16StaysNear) {
  const Golden golden(GetParam(), Precision::bf16);
  engine::CpuExecutor executor(golden.model->plan, {.threads = 2});
  golden.start(executor);
  executor.run(Program::train, golden.scalars(1));
  const double exact = golden.file["losses"][0];
  EXPECT_NEAR(read_scalar(executor, golden.model->loss), exact, 0.02 * exact);
  double all = 0, difference = 0;
  for (const Parameter& parameter : golden.model->parameters) {
    const auto& expected = golden.file["gradients"][parameter.name];
    std::vector<float> gradient(expected["size"].get<std::size_t>());
    executor.read(golden.model->plan.gradient(parameter.id), gradient);
    double square = 0;
    for (const float g : gradient) square += static_cast<double>(g) * g;
    const double norm = expected["norm"];
    all += norm * norm;
    difference += (std::sqrt(square) - norm) * (std::sqrt(square) - norm);
  }
  EXPECT_LT(std::sqrt(difference), 4e-2 * std::sqrt(all));
}

INSTANTIATE_TEST_SUITE_P(
    Members, GoldenTest,
    testing::Values("gpt2", "llama_grouped", "post_norm_deepnorm", "post_norm_admin", "completep",
                    "eq3", "linear_local_sandwich", "low_rank_strict", "window_global_strided",
                    "own_block", "smeared_keys", "projected_keys", "synthesised_keys", "normalised",
                    "unnormalised", "linear_bidirectional", "sorted_keys", "slices"),
    [](const auto& test) { return test.param; });

}  // namespace
}  // namespace fathom::model
