// Members of the family on the GPU against the reference: gradients in f32 and bf16, that one
// executor repeats its bits, and that work side by side changes none. Skipped where there is no
// GPU, but for plans for a GPU on the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/toml_reader.h"
#include "engine/cuda/module.h"
#include "engine/gpu_path.h"
#include "engine/ref/ref_executor.h"
#include "model/spec_toml.h"
#include "model/transformer.h"
#include "scratch_folder.h"

namespace fathom::model {
namespace {

using engine::Program;

struct Member {
  const char* name;
  const char* settings;
};

void PrintTo(const Member& member, std::ostream* out) {
  *out << member.name;
}

// Every switch at least once; widths that the fast attention kernels take and others.
constexpr Member kMembers[] = {
    {"gpt2", "activation = \"gelu_tanh\""},
    {"erf_gelu_untied", "tied = false\nbiases = false"},
    {"llama",
     "norm_kind = \"rms\"\nactivation = \"swiglu\"\npositions = \"rotary\"\n"
     "key_heads = 2\nbiases = false\ntied = false"},
    {"post_norm", "norm = \"post\"\nactivation = \"relu\""},
    {"deepnorm", "norm = \"post\"\ndepth_scheme = \"deepnorm\""},
    {"no_norm_no_ffn", "norm = \"none\"\nfeed_forward = false"},
    {"no_residual", "residual = false\nlayers = 1"},
    {"completep", "parametrisation = \"completep\"\nbase_width = 16"},
    {"eq3", "attention = \"none\"\nmask = \"bidirectional\""},
    {"linear_attention", "attention = \"linear\"\npositions = \"none\""},
    {"local_strict", "mask = \"strict\"\nwindow = 20"},
    {"own_block", "layers = 1\nown_block = true\nblock_size = 16"},
    {"smeared", "layers = 1\nkeys = \"smeared\""},
    {"linformer",
     "layers = 1\nkeys = \"projected\"\nprojected_length = 24\nmask = \"bidirectional\""},
    {"synthesizer", "layers = 1\nkeys = \"synthesised\""},
    {"sorted", "layers = 1\nkeys = \"sorted\"\nblock_size = 16\nmask = \"bidirectional\""},
    {"slices", "slice = 32\nlayers = 3\ncontext = 16"},
    {"performer",
     "layers = 1\nattention = \"performer\"\nfeatures = 40\npositions = \"rotary\"\n"
     "heads = 4\nkey_heads = 2"},
    {"linear_bidirectional",
     "layers = 1\nattention = \"linear\"\nmask = \"bidirectional\"\ncontext = 90"},
    {"normalised", "layers = 1\nattention = \"normalised\"\ncontext = 90"},
    {"unnormalised", "layers = 1\nattention = \"none\"\nattention_norm = true"},
    {"strided", "layers = 1\nwindow = 3\nstride = 8"},
    {"drawn_blocks",
     "mask = \"bidirectional\"\nwindow = 3\nglobal_tokens = 2\nrandom_blocks = 1\nblock_size = 8\n"
     "context = 130\nlayers = 1"},
    {"bidirectional", "mask = \"bidirectional\""},
    {"sandwich", "order = \"ssff\""},
    {"low_rank", "embedding_rank = 24"},
    {"free_head_size", "head_size = 24"},
    {"odd_head_size", "head_size = 20"},
    {"dropout", "dropout = 0.2"},
    {"long_context",
     "activation = \"gelu_tanh\"\nwidth = 128\nheads = 2\ncontext = 136\nlayers = 1"},
    {"wide", "activation = \"gelu_tanh\"\nwidth = 256\ncontext = 48\nlayers = 1"},
};

std::vector<float> gradients(const Transformer& model, engine::Executor& executor) {
  initialise(model, executor, 5);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(model.rows()));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * i % 96);
  executor.write_tokens(model.tokens, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 7 % 96);
  executor.write_tokens(model.targets, ids);
  engine::StepScalars scalars;
  scalars.loss_scale = 1.0f / static_cast<float>(model.rows());
  executor.run(Program::train, scalars);
  std::vector<float> all{read_scalar(executor, model.loss)};
  for (const Parameter& parameter : model.parameters) {
    std::vector<float> gradient(static_cast<std::size_t>(model.plan.tensor(parameter.id).size()));
    executor.read(model.plan.gradient(parameter.id), gradient);
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

std::unique_ptr<const Transformer> build(const Member& member, Precision precision,
                                         const engine::PlanTarget& target, int batch = 3) {
  std::string toml = member.settings;
  const auto add = [&](const std::string& key, const std::string& value) {
    if (toml.find(key + " =") == std::string::npos) toml += "\n" + key + " = " + value;
  };
  add("layers", "2");
  add("width", "64");
  add("heads", "4");
  add("context", "64");
  toml += "\nvocab = 96\ninit_std = 0.1\n";
  TomlReader reader = TomlReader::from_text(toml, member.name);
  BuildOptions options;
  options.batch = batch;
  options.precision = precision;
  options.target = target;
  return build_transformer(read_model_spec(reader), options);
}

class CudaMembers : public testing::TestWithParam<std::tuple<Member, engine::GpuPath>> {
 protected:
  void SetUp() override {
    if (const std::string why = engine::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
  engine::CudaOptions options() const { return engine::options_for(std::get<1>(GetParam())); }
  std::unique_ptr<const Transformer> build_member(Precision precision) const {
    return build(std::get<0>(GetParam()), precision, cuda_target(options()));
  }
  static std::unique_ptr<engine::Executor> make_executor(const Transformer& model,
                                                         const engine::CudaOptions& options) {
    return engine::cuda_module().make_executor(model.plan, options);
  }

  void expect_near_reference(Precision precision, double tolerance) const {
    const auto model = build_member(precision);
    engine::RefExecutor reference(model->plan);
    const auto cuda = make_executor(*model, options());
    const auto expected = gradients(*model, reference);
    const auto actual = gradients(*model, *cuda);
    double difference = 0, norm = 0;
    for (std::size_t i = 1; i < expected.size(); ++i) {
      difference += std::pow(static_cast<double>(expected[i]) - actual[i], 2);
      norm += std::pow(static_cast<double>(expected[i]), 2);
    }
    EXPECT_LT(std::sqrt(difference / norm), tolerance);
    EXPECT_NEAR(actual[0], expected[0], tolerance * expected[0]);
    EXPECT_EQ(actual, gradients(*model, *cuda)) << "the second run differs";
  }
};

TEST_P(CudaMembers, GradientsInF32) {
  expect_near_reference(Precision::f32, 1e-4);
}

TEST_P(CudaMembers, GradientsInBf16) {
  expect_near_reference(Precision::bf16, 4e-2);
}

TEST_P(CudaMembers, LanesGiveTheSameBits) {
  const auto model = build_member(Precision::bf16);
  const ScratchFolder folder;
  engine::CudaOptions chosen = options();
  chosen.gemm_cache = folder / "gemms.txt";
  chosen.graphs = false;
  chosen.lanes = 1;
  const auto one = make_executor(*model, chosen);
  chosen.graphs = true;
  chosen.lanes = 2;
  const auto two = make_executor(*model, chosen);
  const auto expected = gradients(*model, *one);
  // The first run of a program is eager; from the second on it is a graph.
  for (int run = 0; run < 4; ++run) EXPECT_EQ(expected, gradients(*model, *two)) << run;
}

/// Captures of one thread and waits of another for the whole device must not meet.
TEST(CudaThreads, ExecutorsOfSeveralThreadsDoNotDisturbEachOther) {
  if (const std::string why = engine::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const engine::CudaOptions options;
  const auto model = build(kMembers[0], Precision::f32, cuda_target(options));
  std::vector<std::vector<float>> found(16);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < found.size(); i += 4) {
          const auto executor = engine::cuda_module().make_executor(model->plan, options);
          // The first run of a program is eager, the second captures it.
          for (int run = 0; run < 3; ++run) found[i] = gradients(*model, *executor);
        }
      });
    }
  }
  engine::RefExecutor reference(model->plan);
  const auto expected = gradients(*model, reference);
  for (const std::vector<float>& actual : found) {
    ASSERT_EQ(actual.size(), expected.size());
    EXPECT_NEAR(actual[0], expected[0], 1e-4 * expected[0]);
  }
}

class Members : public testing::TestWithParam<Member> {};

TEST_P(Members, PlansForAGpuHaveTheSameGradients) {
  constexpr int kBatch = 1;  // the reference takes its time for every row
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const auto plain = build(GetParam(), precision, {}, kBatch);
    engine::RefExecutor first(plain->plan);  // in double, whatever the types
    const auto expected = gradients(*plain, first);
    for (const char* offers : {"generic", "hopper"}) {
      const auto gpu = build(GetParam(), precision, {engine::find_offers(offers), {}}, kBatch);
      engine::RefExecutor second(gpu->plan);
      EXPECT_EQ(expected, gradients(*gpu, second)) << offers;
      EXPECT_LE(gpu->plan.storage_bytes(engine::Storage::activation),
                plain->plan.storage_bytes(engine::Storage::activation));
    }
  }
}

/// Attention that fills the GPU makes the gradient of its GEMM's bias as well.
class CudaAttention : public testing::TestWithParam<std::tuple<const char*, engine::GpuPath>> {};

TEST_P(CudaAttention, BiasGradientOfQkv) {
  if (const std::string why = engine::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const auto& [mask, path] = GetParam();
  const engine::CudaOptions cuda_options = engine::options_for(path);
  TomlReader reader = TomlReader::from_text(
      std::string("layers = 2\nwidth = 64\nheads = 2\nvocab = 96\ncontext = 130\n") +
          "init_std = 0.1\nmask = \"" + mask + "\"",
      mask);
  BuildOptions options;
  options.batch = 33;
  options.precision = Precision::bf16;
  options.target = cuda_target(cuda_options);
  const auto model = build_transformer(read_model_spec(reader), options);
  engine::RefExecutor reference(model->plan);
  const auto cuda = engine::cuda_module().make_executor(model->plan, cuda_options);
  const auto expected = gradients(*model, reference), actual = gradients(*model, *cuda);
  std::size_t at = 1;
  for (const Parameter& parameter : model->parameters) {
    double difference = 0, norm = 0;
    const std::int64_t size = model->plan.tensor(parameter.id).size();
    for (const std::size_t end = at + static_cast<std::size_t>(size); at < end; ++at) {
      difference += std::pow(static_cast<double>(expected[at]) - actual[at], 2);
      norm += std::pow(static_cast<double>(expected[at]), 2);
    }
    if (parameter.name.find(".qkv.") == std::string::npos) continue;
    EXPECT_LT(std::sqrt(difference / norm), 4e-2) << parameter.name;
  }
  EXPECT_EQ(actual, gradients(*model, *cuda)) << "the second run differs";
}

INSTANTIATE_TEST_SUITE_P(Family, Members, testing::ValuesIn(kMembers),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Family, CudaMembers,
                         testing::Combine(testing::ValuesIn(kMembers), engine::kGpuPaths),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" +
                                  name_of(std::get<1>(test.param));
                         });
INSTANTIATE_TEST_SUITE_P(Masks, CudaAttention,
                         testing::Combine(testing::Values("causal", "strict", "bidirectional"),
                                          engine::kGpuPaths),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  name_of(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace fathom::model
