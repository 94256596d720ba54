#include "pretrained/tensor_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/safetensors.h"

namespace fathom::pretrained {
namespace {

namespace fs = std::filesystem;

class SafetensorsSource : public TensorSource {
 public:
  explicit SafetensorsSource(const fs::path& folder) : model_(folder) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> list;
    for (const TensorView* tensor : model_.tensors()) list.push_back(tensor->name);
    return list;
  }
  const TensorShape* find(const std::string& name) const override {
    const TensorView* tensor = model_.find(name);
    return tensor == nullptr ? nullptr : &tensor->shape;
  }
  void read(const std::string& name, std::span<float> out) const override {
    const TensorView& tensor = model_.at(name);
    copy_as_f32(tensor, out);
    release_pages(tensor.bytes);
  }

 private:
  SafetensorsModel model_;
};

void refuse_pickles(const fs::path& folder) {
  if (fs::exists(folder / kModelTensors) || fs::exists(folder / "model.safetensors.index.json")) {
    return;
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth") {
      throw DataError(
          fmt::format("{}: a pickle file can run any program when it is opened, so Fathom does "
                      "not read it; save the model as safetensors",
                      entry.path().string()));
    }
  }
}

}  // namespace

std::unique_ptr<TensorSource> open_safetensors(const fs::path& folder) {
  refuse_pickles(folder);
  return std::make_unique<SafetensorsSource>(folder);
}

void pairs_to_halves(std::span<float> matrix, std::uint64_t rows, std::uint64_t heads) {
  const std::size_t cols = matrix.size() / rows, size = rows / heads, half = size / 2;
  const std::vector<float> source(matrix.begin(), matrix.end());
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t from = head * size + 2 * (i % half) + i / half;
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from * cols), cols,
                  matrix.begin() + static_cast<std::ptrdiff_t>((head * size + i) * cols));
    }
  }
}

}  // namespace fathom::pretrained
