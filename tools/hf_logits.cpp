// Fathom's half of the comparison with transformers (tools/check_transformers.py is the other):
//
//   hf_logits export FOLDER   writes a GPT-2 and a Llama model (grouped heads, CompleteP) with
//                             random weights in Hugging Face layout, and next to them Fathom's
//                             logits
//   hf_logits check FOLDER    imports every model folder below FOLDER and compares its logits with
//                             those that transformers stored there
//
// Logits come from the CPU backend in f32. Exits 1 when a difference exceeds 1e-4.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/safetensors.h"
#include "engine/cpu/cpu_executor.h"
#include "model/hf_layout.h"
#include "model/transformer.h"

namespace {

using namespace fathom;
using namespace fathom::model;
namespace fs = std::filesystem;

constexpr double kTolerance = 1e-4;

std::vector<float> logits_of(const ModelSpec& spec, const ParameterValues& values,
                             const std::vector<std::int32_t>& tokens) {
  BuildOptions options;
  options.purpose = Purpose::logits;
  options.batch = std::ssize(tokens) / spec.context;
  const auto model = build_transformer(spec, options);
  engine::CpuExecutor executor(model->plan, {});
  for (const Parameter& parameter : model->parameters) {
    executor.write(parameter.id, values.at(parameter.name));
  }
  executor.run(engine::Program::refresh, {});
  executor.write_tokens(model->tokens, tokens);
  executor.run(engine::Program::evaluate, {});
  std::vector<float> logits(tokens.size() * static_cast<std::size_t>(spec.vocab));
  executor.read(model->logits, logits);
  return logits;
}

ModelSpec example(HfFormat format) {
  ModelSpec spec;
  spec.layers = 3;
  spec.width = 96;
  spec.heads = 6;
  spec.vocab = 211;
  spec.context = 64;
  spec.parametrisation = Parametrisation::completep;
  spec.base_width = 32;
  spec.init_std = 0.2;
  spec.activation = FeedForward::gelu_tanh;
  if (format == HfFormat::llama) {
    spec.key_heads = 2;
    spec.ffn = 160;
    spec.tied = false;
    spec.biases = false;
    spec.norm_kind = engine::NormKind::rms;
    spec.activation = FeedForward::swiglu;
    spec.positions = Positions::rotary;
  }
  return spec;
}

void export_example(HfFormat format, const fs::path& folder) {
  const ModelSpec spec = example(format);
  const auto model = build_transformer(spec, {});
  ParameterValues values;
  for (const Parameter& parameter : model->parameters) {
    values[parameter.name] = initial_values(*model, parameter, 11);
  }
  export_hf(spec, values, format, folder);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(2 * spec.context));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i * i * 7 + 3 * i) % 211;
  }
  const std::vector<float> logits = logits_of(spec, values, tokens);
  const auto T = static_cast<std::uint64_t>(spec.context);
  SafetensorsWriter writer(
      folder / "logits.safetensors",
      {{"tokens", TensorType::i32, {2, T}}, {"logits", TensorType::f32, {2, T, 211}}});
  writer.write("tokens", std::as_bytes(std::span(tokens)));
  writer.write("logits", std::as_bytes(std::span(logits)));
  writer.commit();
  fmt::print("{}\n", folder.string());
}

bool check_folder(const fs::path& folder) {
  ImportedModel model = import_hf(folder);
  const SafetensorsFile file(folder / "logits.safetensors");
  const TensorView& tokens_view = *file.find("tokens");
  const TensorView& logits_view = *file.find("logits");
  std::vector<std::int32_t> tokens(tokens_view.elements());
  std::memcpy(tokens.data(), tokens_view.bytes.data(), tokens_view.bytes.size());
  std::vector<float> expected(logits_view.elements());
  copy_as_f32(logits_view, expected);
  const std::vector<float> found = logits_of(model.spec, model.parameters, tokens);
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::fabs(expected[i] - found[i])));
    largest = std::max(largest, static_cast<double>(std::fabs(expected[i])));
  }
  fmt::print("{}: {} logits, largest {:.3f}, largest difference {:.2e}\n", folder.string(),
             expected.size(), largest, worst);
  return worst <= kTolerance && found.size() == expected.size();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  try {
    if (mode == "export") {
      export_example(HfFormat::gpt2, fs::path(argv[2]) / "gpt2");
      export_example(HfFormat::llama, fs::path(argv[2]) / "llama");
      return 0;
    }
    if (mode == "check") {
      bool good = true;
      for (const auto& entry : fs::directory_iterator(argv[2])) {
        if (entry.is_directory()) good = check_folder(entry.path()) && good;
      }
      return good ? 0 : 1;
    }
  } catch (const Error& error) {
    fmt::print(stderr, "hf_logits: {}\n", error.what());
    return error.exit_code();
  }
  fmt::print(stderr, "usage: hf_logits export|check FOLDER\n");
  return 2;
}
