#include "engine/ops/dropout/dropout_mask.h"
#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {

void run(const Dropout& op, const Context& context) {
  for (std::int64_t i = 0; i < context.tensor(op.y).size(); ++i) {
    context.data(op.y)[i] =
        context.data(op.x)[i] * dropout_factor(op.mask, context.scalars.draw, i);
  }
}

void run(const DropoutBackward& op, const Context& context) {
  for (std::int64_t i = 0; i < context.tensor(op.dx).size(); ++i) {
    put(&context.data(op.dx)[i],
        context.data(op.dy)[i] * dropout_factor(op.mask, context.scalars.draw, i), op.mode);
  }
}

}  // namespace fathom::engine::ref
