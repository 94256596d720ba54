// fathom export --compact as a user meets it.
#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "model/transformer.h"
#include "model/units.h"
#include "scratch_folder.h"
#include "train/weights.h"

namespace fathom {
namespace {

/// Two layers with 64 neurons each, of which the first layer's first two read nothing.
train::Weights sized_weights() {
  train::Weights weights;
  weights.spec.width = 16;
  weights.spec.vocab = 257;
  weights.spec.context = 16;
  const auto model = model::build_transformer(weights.spec, {});
  for (const model::Parameter& parameter : model->parameters) {
    weights.parameters[parameter.name] = model::initial_values(*model, parameter, 3);
  }
  std::vector<float>& up = weights.parameters.at("sub.1.ffn.up.weight");
  std::fill_n(up.begin(), 2 * 16, 0.0f);
  std::vector<float>& bias = weights.parameters.at("sub.1.ffn.up.bias");
  std::fill_n(bias.begin(), 2, 0.0f);
  return weights;
}

TEST(ExportCompact, WritesTheSmallerModel) {
  const ScratchFolder folder;
  const train::Weights weights = sized_weights();
  train::save_weights(weights, folder / "model");
  const std::string model = (folder / "model").string();
  const CommandResult written =
      run_command({"export", model, "--compact", "-o", (folder / "small").string()});
  ASSERT_EQ(written.code, 0) << written.err;
  const std::int64_t all = weights.parameter_count();
  EXPECT_NE(written.err.find("2 neurons and 0 heads contribute nothing"), std::string::npos)
      << written.err;
  const train::Weights small = train::load_weights(folder / "small");
  EXPECT_EQ(small.spec.layer_ffn, (std::vector<std::int64_t>{62, 64}));
  EXPECT_EQ(small.parameter_count(), all - 2 * (16 + 1 + 16));
  const CommandResult foreign = run_command(
      {"export", model, "--compact", "--format", "hf-gpt2", "-o", (folder / "hf").string()});
  EXPECT_EQ(foreign.code, 2);
  EXPECT_NE(foreign.err.find("hf-gpt2 cannot express layer_ffn"), std::string::npos) << foreign.err;
}

}  // namespace
}  // namespace fathom
