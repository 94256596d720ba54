// The gradient of a window's summed loss, layer by layer from the back, on one thread.
//
// It flows through the stream only: weights are not trained here. On its way it gives, for every
// head, the derivative with respect to a gate xi that multiplies the head's output, at xi = 1
// (arXiv 1905.10650): sum over places of <dL/dz, z> for the head's output z. Thus one backward
// pass ranks all heads, where removing each would take one forward pass per head.
#pragma once

#include "pretrained/forward.h"

namespace fathom::pretrained {

class Backward {
 public:
  /// The forward pass must outlive it.
  explicit Backward(const Forward& forward)
      : forward_(forward), weights_(forward.weights_), layout_(forward.layout_) {}

  /// d(sum of losses)/dh of the last stream h [T, D] into `gradient`.
  void ends(const float* h, std::span<const data::TokenId> targets, float* gradient) const;
  /// `gradient` comes in as that of the layer's output and leaves as that of its input `h`;
  /// gates[head] is set.
  void layer(const LayerWeights& layer, std::int64_t index, const float* h, float* gradient,
             double* gates) const;

 private:
  struct Half;
  void half(const Half& half, const float* stream, float* gradient) const;
  void attention(const LayerWeights& layer, std::int64_t index, const float* x, const float* dy,
                 float* dx, double* gates) const;
  void head(std::int64_t head, const LayerLayout& own, const float* qkv, const float* d_mixed,
            float* d_qkv, double* gates) const;
  void unrotate(int table, float* d_qkv) const;
  void unnormalise_heads(const LayerWeights& layer, const float* raw, float* d_qkv) const;
  void feed_forward(const LayerWeights& layer, const float* x, const float* dy, float* dx) const;

  const Forward& forward_;
  const Weights& weights_;
  const Layout& layout_;
};

}  // namespace fathom::pretrained
