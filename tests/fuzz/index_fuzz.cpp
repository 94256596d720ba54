// Any bytes either read as model.safetensors.index.json beside one shard or throw an error of one
// line; nothing outside the folder is opened.
#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "core/safetensors.h"

namespace {

/// A folder with one good shard, for as long as the program runs.
class ShardFolder {
 public:
  ShardFolder() {
    char name[] = "/tmp/fathom_index_XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    path_ = name;
    const float values[] = {1, 2, 3};
    fathom::SafetensorsWriter writer(path_ / "a.safetensors", {{"x", fathom::TensorType::f32, {3}},
                                                               {"y", fathom::TensorType::f32, {}}});
    writer.write("x", std::as_bytes(std::span(values)));
    writer.write("y", std::as_bytes(std::span(values).first(1)));
    writer.commit();
  }
  ~ShardFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  static const ShardFolder folder;
  std::ofstream(folder.path() / "model.safetensors.index.json", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const SafetensorsModel model(folder.path());
    for (const TensorView* tensor : model.tensors()) {
      std::vector<float> values(tensor->name == "x" ? 3 : 1);
      copy_as_f32(model.at(tensor->name), values);
    }
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
