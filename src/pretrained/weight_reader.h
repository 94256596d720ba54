// Turns the tensors of a checkpoint into the canonical weights of weights.h.
#pragma once

#include <set>
#include <string>

#include "pretrained/weights.h"

namespace fathom::pretrained {

class WeightReader {
 public:
  WeightReader(const Checkpoint& checkpoint, const Family& family, const Layout& layout);

  EndWeights read_ends();
  LayerWeights read_layer(std::int64_t index);
  /// The layout, with what only the tensors decide (whether there is a separate head).
  const Layout& layout() const { return layout_; }
  /// DataError naming a tensor of the file that no part of the model reads.
  void check_all_known() const;

 private:
  std::string layer_name(std::int64_t index, std::string_view part) const;
  bool has(const std::string& name) const;
  Vector read_vector(const std::string& name, std::int64_t size);
  Vector read_bias(const std::string& name, std::int64_t size);
  Matrix read_matrix(const std::string& name, std::int64_t rows, std::int64_t cols,
                     bool transposed = false);
  NormWeights read_norm(const std::string& name, std::int64_t size);
  NormWeights layer_norm(std::int64_t index, std::string_view part, std::int64_t size);
  void read_qkv(std::int64_t index, LayerWeights& layer);
  void read_ffn(std::int64_t index, LayerWeights& layer);
  void read_head(EndWeights& ends);
  std::vector<float> read_checked(const std::string& name, const TensorShape& expected);

  const Checkpoint& checkpoint_;
  const TensorSource& tensors_;
  const Family& family_;
  Layout layout_;
  std::string prefix_;
};

}  // namespace fathom::pretrained
