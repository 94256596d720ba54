// What a small model does once it is read: one forward pass over three tokens.
#pragma once

#include "pretrained/forward.h"

namespace fathom {

inline void run_if_small(pretrained::Weights& weights) {
  constexpr std::int64_t kMostNumbers = 1
                                        << 16;  // larger ones take the fuzzer's time, not its paths
  const pretrained::Layout& layout = weights.layout();
  if (weights.parameter_count() > kMostNumbers || layout.depth() > 4) return;
  const std::vector<data::TokenId> ids{0, 1, 0};
  const pretrained::Forward forward(weights, 3);
  pretrained::Scratch scratch;
  std::vector<float> h(3 * static_cast<std::size_t>(layout.width));
  std::vector<float> losses(3);
  forward.embed(ids, h.data());
  for (std::int64_t l = 0; l < layout.depth(); ++l) {
    forward.run_layer(*weights.layer(l), l, h.data(), scratch);
  }
  forward.losses(h.data(), ids, scratch, losses.data());
}

}  // namespace fathom
