// The order of work in one layer, for whatever does the arithmetic: the CPU a window at a time
// (forward.cpp), a GPU many windows at once (device_forward.cpp).
//
// `Machine` has, over the stream h that it was made for:
//   reads(norm)              what a branch reads: norm(h), or h where that norm is absent
//   attend(x), feed_forward(x)   the branch's result
//   add(y, norm)             h += branch_scale y, the norm applied to y before that or, in
//                            post-norm models, to h after it
//   middle()                 called when attention's half is done
#pragma once

#include "pretrained/layout.h"

namespace fathom::pretrained {

template <class Machine, class Layer>
void run_block(Machine& machine, Block block, const Layer& layer, bool attention, bool ffn) {
  // A parallel block's feed-forward reads the stream as attention found it.
  const bool parallel = block == Block::parallel;
  float* fed = parallel && ffn ? machine.feed_forward(machine.reads(layer.ffn_in)) : nullptr;
  if (attention) {
    machine.add(machine.attend(machine.reads(layer.attention_in)), layer.attention_out);
  }
  machine.middle();
  if (!ffn) return;
  if (!parallel) fed = machine.feed_forward(machine.reads(layer.ffn_in));
  machine.add(fed, layer.ffn_out);
}

}  // namespace fathom::pretrained
