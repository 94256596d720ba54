#include <cstring>

#include "engine/cpu/cpu_ops.h"

namespace fathom::engine::cpu {
namespace {

Operand shifted(Operand x, std::int64_t elements) {
  x.data = static_cast<char*>(x.data) + elements * (x.bf16 ? 2 : 4);
  return x;
}

/// A slice of `part` columns in rows of `whole`, from column `first` on, wrapping around.
struct SliceColumns {
  std::int64_t whole, part, first;

  /// body(place in the whole, place in the slice, count) for the one or two runs of a row.
  template <class Body>
  void runs(std::int64_t row, const Body& body) const {
    const std::int64_t ahead = std::min(part, whole - first);
    body(row * whole + first, row * part, ahead);
    if (ahead < part) body(row * whole, row * part + ahead, part - ahead);
  }
};

SliceColumns columns_of(const Context& context, TensorId whole, TensorId part, std::int64_t first) {
  return {context.tensor(whole).cols, context.tensor(part).cols, first};
}

/// out[at] (+)= a x[from]
void combine_run(const Kernels& kernels, Operand x, std::int64_t from, float a, Operand out,
                 std::int64_t at, std::int64_t count, bool accumulate) {
  kernels.combine({shifted(x, from), {}, shifted(out, at), a, 0, accumulate}, 0, count);
}

template <class Body>
BoundOp bind_rows(const Context& context, std::int64_t rows, const Body& body) {
  return [body, rows, threads = context.threads](const StepScalars&) {
    parallel_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) body(row);
    });
  };
}

}  // namespace

BoundOp bind(const Slice& op, const Context& context) {
  const SliceColumns columns = columns_of(context, op.x, op.y, op.first);
  return bind_rows(context, context.tensor(op.y).rows,
                   [columns, x = context.operand(op.x), y = context.operand(op.y),
                    &kernels = context.kernels](std::int64_t row) {
                     columns.runs(row, [&](auto wide, auto narrow, auto count) {
                       combine_run(kernels, x, wide, 1, y, narrow, count, false);
                     });
                   });
}

BoundOp bind(const SliceBackward& op, const Context& context) {
  const SliceColumns columns = columns_of(context, op.dx, op.dy, op.first);
  return bind_rows(
      context, context.tensor(op.dy).rows,
      [columns, dy = context.operand(op.dy), dx = context.operand(op.dx),
       accumulate = op.mode == GradMode::accumulate, &kernels = context.kernels](std::int64_t row) {
        if (!accumulate) {
          const auto bytes = static_cast<std::size_t>(columns.whole * (dx.bf16 ? 2 : 4));
          std::memset(shifted(dx, row * columns.whole).data, 0, bytes);
        }
        columns.runs(row, [&](auto wide, auto narrow, auto count) {
          combine_run(kernels, dy, narrow, 1, dx, wide, count, true);
        });
      });
}

BoundOp bind(const AddSlice& op, const Context& context) {
  const SliceColumns columns = columns_of(context, op.x, op.branch, op.first);
  return bind_rows(
      context, context.tensor(op.x).rows,
      [columns, x = context.operand(op.x), branch = context.operand(op.branch),
       r = context.operand(op.r), scale = op.scale, &kernels = context.kernels](std::int64_t row) {
        const std::int64_t begin = row * columns.whole;
        if (r.data != x.data) {
          combine_run(kernels, x, begin, 1, r, begin, columns.whole, false);
        }
        columns.runs(row, [&](auto wide, auto narrow, auto count) {
          combine_run(kernels, branch, narrow, scale, r, wide, count, true);
        });
      });
}

BoundOp bind(const AddSliceBackward& op, const Context& context) {
  const std::int64_t part = op.d_branch.exists() ? context.tensor(op.d_branch).cols : 0;
  const SliceColumns columns{context.tensor(op.dr).cols, part, op.first};
  return bind_rows(context, context.tensor(op.dr).rows,
                   [columns, dr = context.operand(op.dr), dx = context.operand(op.dx),
                    d_branch = context.operand(op.d_branch), scale = op.scale,
                    add_dx = op.dx_mode == GradMode::accumulate,
                    add_branch = op.d_branch_mode == GradMode::accumulate,
                    &kernels = context.kernels](std::int64_t row) {
                     const std::int64_t begin = row * columns.whole;
                     if (d_branch) {
                       columns.runs(row, [&](auto wide, auto narrow, auto count) {
                         combine_run(kernels, dr, wide, scale, d_branch, narrow, count, add_branch);
                       });
                     }
                     if (dx) combine_run(kernels, dr, begin, 1, dx, begin, columns.whole, add_dx);
                   });
}

}  // namespace fathom::engine::cpu
