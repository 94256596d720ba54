// Any bytes either open as safetensors or throw DataError; every tensor handed out lies in the
// file.
#include "core/safetensors.h"

#include "core/error.h"
#include "fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const FuzzFile file(data, size);
  try {
    const SafetensorsFile tensors(file.path());
    std::size_t total = 0;
    unsigned sum = 0;
    for (const TensorView& tensor : tensors.tensors()) {
      total += tensor.bytes.size();
      for (const std::byte byte : tensor.bytes) sum += static_cast<unsigned>(byte);
      if (tensors.find(tensor.name) != &tensor) std::abort();
      const bool real = tensor.type == TensorType::f16 || tensor.type == TensorType::bf16 ||
                        tensor.type == TensorType::f32;
      std::vector<float> values(real ? tensor.elements() : 0);
      if (real) copy_as_f32(tensor, values);
    }
    if (total > size) std::abort();
    volatile unsigned kept = sum;
    (void)kept;
  } catch (const DataError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
