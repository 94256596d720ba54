// The weights of a model in one canonical form, whatever its file has: fused [q; k; v] rows, gate
// above up, matrices [out, in], norm gains whole. Layers are widened to f32 when they are needed
// and kept while they fit the memory given; a model larger than that is streamed layer by layer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/hash.h"
#include "pretrained/checkpoint.h"
#include "pretrained/families.h"

namespace fathom::pretrained {

struct Matrix {
  std::int64_t rows = 0, cols = 0;
  std::vector<float> values;  // row-major
  bool exists() const { return !values.empty(); }
};
using Vector = std::vector<float>;  // empty: absent

struct NormWeights {
  Vector gain, bias;
  bool exists() const { return !gain.empty(); }
};

struct LayerWeights {
  Matrix qkv, out, up, down;  // up: [gate; up] of gated models
  Vector qkv_bias, out_bias, up_bias, down_bias;
  NormWeights attention_in, attention_out, ffn_in, ffn_out;  // before and after each branch
  NormWeights q_norm, k_norm;
  Hash128 hash;  // equal layers have equal ones
};

/// What comes before the first layer and after the last.
struct EndWeights {
  Matrix tokens, positions, token_types, project_in, project_out, head;  // head: absent if tied
  Vector head_bias;
  NormWeights embedding_norm, final_norm;
  Matrix masked_dense;  // of a masked-language head
  Vector masked_dense_bias;
  NormWeights masked_norm;
};

class Weights {
 public:
  /// Reads the ends and checks that every tensor of the file is one the family knows. At most
  /// `memory_bytes` of layers are kept, never fewer than two.
  Weights(Checkpoint checkpoint, std::uint64_t memory_bytes);

  const Layout& layout() const { return layout_; }
  const std::string& origin() const { return checkpoint_.origin; }
  const data::Tokenizer* tokenizer() const { return checkpoint_.tokenizer.get(); }
  const std::string& tokenizer_note() const { return checkpoint_.tokenizer_note; }
  const EndWeights& ends() const { return ends_; }
  /// Not to be called from several threads at once.
  std::shared_ptr<const LayerWeights> layer(std::int64_t index);
  /// All layers fit the memory given.
  bool resident() const { return capacity_ >= layers_.size(); }
  std::int64_t parameter_count() const { return parameters_; }
  std::uint64_t layer_bytes() const { return layer_bytes_; }

 private:
  Checkpoint checkpoint_;
  const Family* family_;
  Layout layout_;
  std::string prefix_;
  EndWeights ends_;
  std::vector<std::shared_ptr<const LayerWeights>> layers_;
  std::deque<std::int64_t> kept_;  // in the order they were read
  std::size_t capacity_ = 0;
  std::uint64_t layer_bytes_ = 0;
  std::int64_t parameters_ = 0;
};

}  // namespace fathom::pretrained
