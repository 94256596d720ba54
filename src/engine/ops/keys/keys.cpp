#include "engine/ops/keys/keys.h"

#include "engine/plan/differentiator.h"
#include "engine/require.h"

namespace fathom::engine {

void check(const MapKeys& op, const StepPlan& plan) {
  const KeyShape& s = op.shape;
  const Tensor& weight = plan.tensor(op.weight);
  require(has_shape(plan, op.qkv, s.batch * s.context, s.qkv_cols()), "keys: shape of qkv");
  require(same_shape(plan, op.y, op.qkv), "keys: wrong shape of the result");
  require(plan.tensor(op.y).dtype == plan.tensor(op.qkv).dtype, "keys: types differ");
  require(weight.dtype == DType::f32, "keys: the weight is f32");
  if (s.map == KeyMap::smear) {
    require(has_shape(plan, op.weight, 1, s.key_heads), "keys: one number for each key head");
  } else if (s.map == KeyMap::project) {
    require(weight.rows <= s.context && weight.cols == s.context, "keys: shape of the projection");
  } else if (s.map == KeyMap::sort) {
    require(s.context % s.block == 0, "keys: blocks are whole");
    require(has_shape(plan, op.weight, s.context / s.block, s.key_heads * s.head_size),
            "keys: a row for each block");
  } else {
    require(has_shape(plan, op.weight, s.context, s.key_heads * s.head_size),
            "keys: a key for each position");
  }
}

void differentiate(const MapKeys& op, Differentiator& out) {
  const TensorId dy = out.incoming(op.y);
  if (!dy.exists()) return;
  const auto d_qkv = out.slot(op.qkv);
  const auto weight = out.slot(op.weight);
  require(d_qkv.id.exists() && d_qkv.mode == GradMode::overwrite, "keys: qkv has another consumer");
  out.append(MapKeysBackward{dy, op.qkv, op.weight, d_qkv.id, weight.id, weight.mode, op.shape});
}

}  // namespace fathom::engine
