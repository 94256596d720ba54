// The processor offers no fused ops: a plan that holds one was made for another device.
#include "core/error.h"
#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {
namespace {

BoundOp refuse() {
  throw InternalError("a fused op: this plan is for another device");
}

}  // namespace

BoundOp bind(const LinearThenActivation&, const Context&) {
  return refuse();
}
BoundOp bind(const LinearBackwardThenActivation&, const Context&) {
  return refuse();
}
BoundOp bind(const LinearThenNorm&, const Context&) {
  return refuse();
}
BoundOp bind(const LinearBackwardThenNorm&, const Context&) {
  return refuse();
}
BoundOp bind(const WithBiasGradient<ActivationBackward>&, const Context&) {
  return refuse();
}
BoundOp bind(const WithBiasGradient<NormBackward>&, const Context&) {
  return refuse();
}
BoundOp bind(const WithBiasGradient<AttentionBackward>&, const Context&) {
  return refuse();
}

}  // namespace fathom::engine::cpu
