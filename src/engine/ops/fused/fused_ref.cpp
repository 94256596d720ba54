// A fused op runs its parts, one after the other: here every tensor has its own memory, even those
// that a device keeps in registers.
#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {
namespace {

template <class First, class Second>
void run_parts(const First& first, const Second& second, const LinearBackward& bias,
               const Context& context) {
  run(first, context);
  run(second, context);
  if (bias.d_bias.exists()) run(bias, context);
}

}  // namespace

void run(const LinearThenActivation& op, const Context& context) {
  run_parts(op.linear, op.activation, {}, context);
}

void run(const LinearBackwardThenActivation& op, const Context& context) {
  run_parts(op.linear, op.activation, op.bias, context);
}

void run(const LinearThenNorm& op, const Context& context) {
  run_parts(op.linear, op.norm, {}, context);
}

void run(const LinearBackwardThenNorm& op, const Context& context) {
  run_parts(op.linear, op.norm, op.bias, context);
}

template <class Maker>
void run(const WithBiasGradient<Maker>& op, const Context& context) {
  run(op.maker, context);
  run(op.bias, context);
}
template void run(const WithBiasGradient<ActivationBackward>&, const Context&);
template void run(const WithBiasGradient<NormBackward>&, const Context&);
template void run(const WithBiasGradient<AttentionBackward>&, const Context&);

}  // namespace fathom::engine::ref
