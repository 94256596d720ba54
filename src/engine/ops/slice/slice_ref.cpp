#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {
namespace {

/// body(place in the whole, place in the slice) for every element of the slice.
template <class Body>
void for_slice(const Tensor& whole, const Tensor& part, std::int64_t first, const Body& body) {
  for (std::int64_t n = 0; n < part.rows; ++n) {
    for (std::int64_t c = 0; c < part.cols; ++c) {
      body(n * whole.cols + (first + c) % whole.cols, n * part.cols + c);
    }
  }
}

}  // namespace

void run(const Slice& op, const Context& context) {
  for_slice(context.tensor(op.x), context.tensor(op.y), op.first,
            [&](std::int64_t wide, std::int64_t narrow) {
              context.data(op.y)[narrow] = context.data(op.x)[wide];
            });
}

void run(const SliceBackward& op, const Context& context) {
  double* dx = context.data(op.dx);
  if (op.mode == GradMode::overwrite) std::fill(dx, dx + context.tensor(op.dx).size(), 0.0);
  for_slice(
      context.tensor(op.dx), context.tensor(op.dy), op.first,
      [&](std::int64_t wide, std::int64_t narrow) { dx[wide] += context.data(op.dy)[narrow]; });
}

void run(const AddSlice& op, const Context& context) {
  const double* x = context.data(op.x);
  double* r = context.data(op.r);
  if (r != x) std::copy(x, x + context.tensor(op.x).size(), r);
  for_slice(context.tensor(op.r), context.tensor(op.branch), op.first,
            [&](std::int64_t wide, std::int64_t narrow) {
              r[wide] += op.scale * context.data(op.branch)[narrow];
            });
}

void run(const AddSliceBackward& op, const Context& context) {
  const double* dr = context.data(op.dr);
  if (op.d_branch.exists()) {
    for_slice(context.tensor(op.dr), context.tensor(op.d_branch), op.first,
              [&](std::int64_t wide, std::int64_t narrow) {
                put(&context.data(op.d_branch)[narrow], op.scale * dr[wide], op.d_branch_mode);
              });
  }
  for (std::int64_t i = 0; op.dx.exists() && i < context.tensor(op.dr).size(); ++i) {
    put(&context.data(op.dx)[i], dr[i], op.dx_mode);
  }
}

}  // namespace fathom::engine::ref
