#include "engine/ops/attention/attention.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {

void check(const Attention& op, const StepPlan& plan) {
  const AttentionShape& s = op.shape;
  require(s.heads % s.key_heads == 0, "attention: key heads must divide the heads");
  require(s.rotary_base == 0 || s.head_size % 2 == 0, "attention: rotary needs an even head size");
  require(s.block >= 1, "attention: a block has at least one position");
  require(has_shape(plan, op.qkv, s.batch * s.context, s.qkv_cols()), "attention: shape of qkv");
  require(has_shape(plan, op.y, s.batch * s.context, s.heads * s.head_size),
          "attention: wrong shape of the result");
  require(has_shape(plan, op.stats, s.batch * s.heads, s.context * s.stats_of_row()),
          "attention: shape of stats");
  require(s.kind != AttentionKind::performer || (s.features >= 1 && s.sums_states()),
          "attention: random features are summed over all keys");
}

void differentiate(const Attention& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  if (!dy.exists()) return;
  const auto d_qkv = out.slot(op.qkv);
  if (!d_qkv.id.exists()) return;
  require(d_qkv.mode == GradMode::overwrite, "attention: qkv has another consumer");
  out.append(AttentionBackward{dy, op.qkv, op.y, op.stats, d_qkv.id, op.shape});
}

}  // namespace fathom::engine
