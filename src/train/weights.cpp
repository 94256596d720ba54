#include "train/weights.h"

#include <fmt/format.h>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/safetensors.h"
#include "core/toml_file.h"
#include "engine/cpu/cpu_executor.h"
#include "model/spec_toml.h"
#include "model/transformer.h"
#include "train/run_folder.h"
#include "train/run_spec.h"

namespace fathom::train {
namespace {

namespace fs = std::filesystem;

// A model folder, as `fathom import` writes it.
constexpr const char* kModelSpec = "model.toml";
constexpr const char* kTokenizerFolder = "fathom_tokenizer";

/// A spec may ask for any size, but the file's size is fixed. Checked before anything is built.
void require_enough_tensors(const model::ModelSpec& spec, const SafetensorsFile& file,
                            const fs::path& path) {
  double elements = 0;
  for (const TensorView& tensor : file.tensors()) elements += as_double(tensor.elements());
  const std::int64_t row = spec.embedding_rank > 0 ? spec.embedding_rank : spec.width;
  const bool table = as_double(spec.vocab) * as_double(row) <= elements;
  if (table && spec.layers <= std::ssize(file.tensors())) return;
  throw DataError(
      fmt::format("{}: holds fewer weights than the spec's {} layers of width {} and "
                  "vocabulary of {} have",
                  path.string(), spec.layers, spec.width, spec.vocab));
}

model::ParameterValues read_parameters(const model::ModelSpec& spec, const fs::path& path) {
  const SafetensorsFile file(path);
  require_enough_tensors(spec, file, path);
  const auto model = model::build_transformer(spec, {});
  model::ParameterValues values;
  for (const model::Parameter& parameter : model->parameters) {
    const engine::Tensor& tensor = model->plan.tensor(parameter.id);
    const TensorView* view = file.find(parameter.name);
    const std::vector<std::uint64_t> shape{as_size(tensor.rows), as_size(tensor.cols)};
    if (view == nullptr || view->shape != shape) {
      throw DataError(fmt::format("{}: lacks {} of shape [{}]", path.string(), parameter.name,
                                  fmt::join(shape, ", ")));
    }
    std::vector<float>& target = values[parameter.name];
    target.resize(view->elements());
    copy_as_f32(*view, target);
  }
  return values;
}

void find_tokenizer(Weights& weights, const fs::path& folder) {
  try {
    if (data::is_token_set(folder)) {
      weights.tokenizer = data::load_tokenizer(folder);
    } else if (fs::exists(folder / kTokenizerFolder)) {
      weights.tokenizer = data::load_tokenizer(folder / kTokenizerFolder);
    } else if (fs::exists(folder / "tokenizer.model")) {
      weights.tokenizer = data::make_sentencepiece_tokenizer(
          read_text_file(folder / "tokenizer.model"), (folder / "tokenizer.model").string());
    } else {
      weights.tokenizer_note = fmt::format("{} holds no tokenizer", folder.string());
    }
  } catch (const Error& error) {
    weights.tokenizer_note = error.what();
  }
}

void save_tokenizer(const Weights& weights, const fs::path& folder) {
  if (!weights.tokenizer) return;
  fs::create_directories(folder / kTokenizerFolder);
  weights.tokenizer->save(folder / kTokenizerFolder);
}

/// Where a run's tokens are now. The spec records where they were; a study that was moved, or is
/// read from another folder, has them two folders above the run (STUDY/tokens, STUDY/runs/ID).
fs::path tokens_of(const RunSpec& spec, const fs::path& run_folder) {
  if (data::is_token_set(spec.tokens)) return spec.tokens;
  const fs::path study = fs::absolute(run_folder).lexically_normal() / "." / ".." / "..";
  const fs::path moved = study.lexically_normal() / fs::path(spec.tokens).filename();
  return data::is_token_set(moved) ? moved : fs::path(spec.tokens);
}

Weights load_run(const fs::path& folder) {
  const RunFolder run(folder);
  const RunSpec spec = read_run_spec(run.spec(), {});
  if (!fs::exists(run.checkpoint())) {
    throw DataError(fmt::format("{}: this run has no checkpoint yet", folder.string()));
  }
  Weights weights;
  weights.spec = spec.model;
  weights.parameters = read_parameters(weights.spec, run.checkpoint());
  find_tokenizer(weights, tokens_of(spec, folder));
  return weights;
}

Weights load_model_folder(const fs::path& folder) {
  TomlReader file = TomlReader::from_file(folder / kModelSpec);
  Weights weights;
  weights.spec = model::read_model_spec(file);
  weights.parameters = read_parameters(weights.spec, folder / kModelTensors);
  find_tokenizer(weights, folder);
  return weights;
}

Weights load_hf(const fs::path& folder) {
  model::ImportedModel imported = model::import_hf(folder);
  Weights weights;
  weights.spec = imported.spec;
  weights.parameters = std::move(imported.parameters);
  find_tokenizer(weights, folder);
  return weights;
}

}  // namespace

std::int64_t Weights::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, values] : parameters) count += std::ssize(values);
  return count;
}

Weights load_weights(const fs::path& folder) {
  if (fs::exists(RunFolder(folder).spec())) return load_run(folder);
  if (fs::exists(folder / kModelSpec)) return load_model_folder(folder);
  if (fs::exists(folder / "config.json")) return load_hf(folder);
  throw DataError(fmt::format(
      "{}: {}; give a run's folder ({}), a model folder ({}) or a Hugging Face one (config.json)",
      folder.string(), fs::exists(folder) ? "holds no model" : "no such folder",
      RunFolder(folder).spec().filename().string(), kModelSpec));
}

void save_weights(const Weights& weights, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    throw DataError(fmt::format("{}: cannot create this folder", folder.string()));
  }
  const auto model = model::build_transformer(weights.spec, {});
  std::vector<TensorSpec> tensors;
  for (const model::Parameter& parameter : model->parameters) {
    const engine::Tensor& tensor = model->plan.tensor(parameter.id);
    tensors.push_back(
        {parameter.name, TensorType::f32, {as_size(tensor.rows), as_size(tensor.cols)}});
  }
  SafetensorsWriter writer(folder / kModelTensors, tensors);
  for (const model::Parameter& parameter : model->parameters) {
    writer.write(parameter.name, std::as_bytes(std::span(weights.parameters.at(parameter.name))));
  }
  writer.commit();
  save_tokenizer(weights, folder);
  write_file_atomically(folder / kModelSpec, toml_file_text(to_toml(weights.spec)));
}

void export_weights(const Weights& weights, model::HfFormat format, const fs::path& folder) {
  model::export_hf(weights.spec, weights.parameters, format, folder);
  save_tokenizer(weights, folder);
  const fs::path pieces = folder / kTokenizerFolder / "tokenizer.model";
  if (weights.tokenizer && fs::exists(pieces)) {
    fs::copy_file(pieces, folder / "tokenizer.model", fs::copy_options::overwrite_existing);
  }
}

}  // namespace fathom::train
