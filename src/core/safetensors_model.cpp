// A model in one safetensors file or in shards with an index.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/json_text.h"
#include "core/safetensors.h"
#include "core/text.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

bool by_name(const TensorView* a, const TensorView* b) {
  return a->name < b->name;
}

}  // namespace

SafetensorsModel::SafetensorsModel(const fs::path& path) : origin_(path.string()) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const SafetensorsFile& file = files_.try_emplace("", path).first->second;
    for (const TensorView& tensor : file.tensors()) tensors_.push_back(&tensor);
  } else if (fs::exists(path / kModelTensors, error)) {
    const SafetensorsFile& file = files_.try_emplace("", path / kModelTensors).first->second;
    for (const TensorView& tensor : file.tensors()) tensors_.push_back(&tensor);
  } else if (fs::exists(path / "model.safetensors.index.json", error)) {
    open_shards(path / "model.safetensors.index.json");
  } else {
    throw DataError(fmt::format(
        "{}: holds neither model.safetensors nor model.safetensors.index.json", path.string()));
  }
  std::ranges::sort(tensors_, by_name);
}

void SafetensorsModel::open_shards(const fs::path& index) {
  const nlohmann::json document = read_json_file(index);
  const auto fail = [&](const std::string& what) {
    throw DataError(fmt::format("{}: {}", index.string(), what));
  };
  if (!document.is_object() || !document.contains("weight_map") ||
      !document["weight_map"].is_object()) {
    fail("weight_map is missing or no object");
  }
  for (const auto& [name, shard] : document["weight_map"].items()) {
    if (!shard.is_string()) fail(fmt::format("the shard of '{}' is not a string", printable(name)));
    const auto file_name = shard.get<std::string>();
    // An index must not reach outside its folder.
    if (file_name.empty() || file_name.find('/') != std::string::npos ||
        file_name.find('\0') != std::string::npos || file_name == "..") {
      fail(fmt::format("'{}' is not a file name", printable(file_name)));
    }
    auto file = files_.find(file_name);
    if (file == files_.end()) {
      file = files_.try_emplace(file_name, index.parent_path() / file_name).first;
    }
    const TensorView* tensor = file->second.find(name);
    if (tensor == nullptr) {
      fail(fmt::format("'{}' is not in {}", printable(name), printable(file_name)));
    }
    tensors_.push_back(tensor);
  }
}

const TensorView* SafetensorsModel::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const TensorView* tensor, std::string_view wanted) { return tensor->name < wanted; });
  return found != tensors_.end() && (*found)->name == name ? *found : nullptr;
}

const TensorView& SafetensorsModel::at(std::string_view name) const {
  const TensorView* tensor = find(name);
  if (tensor == nullptr) throw DataError(fmt::format("{}: no tensor '{}'", origin_, name));
  return *tensor;
}

}  // namespace fathom
