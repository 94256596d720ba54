// A planted model as a Hugging Face folder.
#pragma once

#include <fstream>

#include "core/safetensors.h"
#include "pretrained/planted_model.h"

namespace fathom::pretrained {

inline void write_planted(const PlantedModel& model, const std::filesystem::path& folder) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : model.tensors) {
    specs.push_back({name, TensorType::f32, tensor.shape});
  }
  SafetensorsWriter writer(folder / kModelTensors, specs);
  for (const auto& [name, tensor] : model.tensors) {
    writer.write(name, std::as_bytes(std::span(tensor.values)));
  }
  writer.commit();
  std::ofstream(folder / "config.json") << model.config.dump();
}

}  // namespace fathom::pretrained
