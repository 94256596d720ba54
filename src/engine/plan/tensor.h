// What a plan knows about a tensor: a row-major matrix in one of a few storages. No memory is held
// here; an executor gives every storage one block and a tensor its place in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/enum_array.h"

namespace fathom::engine {

enum class DType : std::uint8_t { f32, bf16, i32, u8 };
constexpr auto enum_names(DType) {
  return std::array{"f32", "bf16", "i32", "u8"};
}

constexpr std::int64_t bytes_of(DType dtype) {
  return dtype == DType::u8 ? 1 : dtype == DType::bf16 ? 2 : 4;
}

/// The blocks of memory of a model. All but `activation` live as long as the executor.
enum class Storage : std::uint8_t {
  parameter,     // f32 master weights
  compute_copy,  // weights in the type that GEMMs use, rewritten after each update
  gradient,      // f32, same offsets as `parameter`
  moment1,       // AdamW state, same offsets as `parameter`
  moment2,
  input,       // tokens, targets and whatever else the host writes before a run
  output,      // losses, norms and whatever else the host reads after a run
  activation,  // cut from one arena by lifetime
};
constexpr auto enum_names(Storage) {
  return std::array{"parameter", "compute copy", "gradient", "moment1",
                    "moment2",   "input",        "output",   "activation"};
}

struct TensorId {
  std::int32_t index = -1;
  constexpr bool exists() const { return index >= 0; }
  friend constexpr bool operator==(TensorId, TensorId) = default;
};

struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Storage storage = Storage::activation;
  std::int64_t offset_bytes = -1;  // within the storage; activations get theirs from finish()
  TensorId master;                 // of a compute copy: the parameter it copies

  std::int64_t size() const { return rows * cols; }
  std::int64_t bytes() const { return size() * bytes_of(dtype); }
};

/// One element for every tensor of a plan, indexed by its id.
template <class T>
class TensorTable : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  using std::vector<T>::operator[];
  decltype(auto) operator[](TensorId id) {
    return std::vector<T>::operator[](static_cast<std::size_t>(id.index));
  }
  decltype(auto) operator[](TensorId id) const {
    return std::vector<T>::operator[](static_cast<std::size_t>(id.index));
  }
  TensorId id_of(std::size_t place) const { return {static_cast<std::int32_t>(place)}; }
  TensorId add(T value) {
    this->push_back(std::move(value));
    return id_of(this->size() - 1);
  }
};
using Tensors = TensorTable<Tensor>;

/// What a backward op does with the gradient it produces.
enum class GradMode : std::uint8_t { overwrite, accumulate };

}  // namespace fathom::engine
