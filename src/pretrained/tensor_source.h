// The tensors of a checkpoint by their Hugging Face names, whatever their file and type.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fathom::pretrained {

using TensorShape = std::vector<std::uint64_t>;

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// Sorted.
  virtual std::vector<std::string> names() const = 0;
  /// nullptr when there is no such tensor.
  virtual const TensorShape* find(const std::string& name) const = 0;
  /// All values, row-major, widened to f32. DataError for a type that holds no weights.
  virtual void read(const std::string& name, std::span<float> out) const = 0;
};

/// A folder with model.safetensors, or with the shards its index names.
std::unique_ptr<TensorSource> open_safetensors(const std::filesystem::path& folder);

/// A matrix whose rows lie as interleaved rotary pairs (x0, x1 of pair 0, then of pair 1, ...)
/// within each of `heads` heads, as Meta, llama2.c and GGUF store it, turned into the first and
/// second halves that Hugging Face's layout wants.
void pairs_to_halves(std::span<float> matrix, std::uint64_t rows, std::uint64_t heads);

}  // namespace fathom::pretrained
