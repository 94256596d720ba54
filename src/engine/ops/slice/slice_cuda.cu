#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"

namespace fathom::engine::cuda {
namespace {

/// A slice of `part` columns in rows of `whole`, from column `first` on, wrapping around.
struct SliceColumns {
  std::int64_t rows, whole, part, first;

  /// The slice's column for column c of a row; `part` or more outside the slice.
  __device__ std::int64_t narrow(std::int64_t c) const { return (c - first + whole) % whole; }
};

/// y (+)= scale times the slice of x.
__global__ void take_slice_kernel(const SliceColumns s, Operand x, Operand y, float scale,
                                  bool accumulate) {
  const std::int64_t item = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (item >= s.rows * s.part) return;
  const std::int64_t column = (s.first + item % s.part) % s.whole;
  const float value = load<1>(x, item / s.part * s.whole + column).v[0];
  put<1>(y, item, {scale * value}, accumulate);
}

/// out (+)= x, or 0 where there is none, and scale times `branch` in its slice.
__global__ void add_slice_kernel(const SliceColumns s, Operand x, Operand branch, Operand out,
                                 float scale, bool accumulate) {
  const std::int64_t item = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (item >= s.rows * s.whole) return;
  float value = x ? load<1>(x, item).v[0] : 0.0f;
  const std::int64_t column = s.narrow(item % s.whole);
  if (branch && column < s.part) {
    value += scale * load<1>(branch, item / s.whole * s.part + column).v[0];
  }
  put<1>(out, item, {value}, accumulate);
}

SliceColumns columns_of(const Context& context, TensorId whole, TensorId part, std::int64_t first) {
  return {context.tensor(whole).rows, context.tensor(whole).cols, context.tensor(part).cols, first};
}

void take_slice(const SliceColumns& s, Operand x, Operand y, float scale, bool accumulate,
                cudaStream_t stream) {
  take_slice_kernel<<<blocks_for(s.rows * s.part, 256), 256, 0, stream>>>(s, x, y, scale,
                                                                          accumulate);
  check_launch("slice");
}

void add_slice(const SliceColumns& s, Operand x, Operand branch, Operand out, float scale,
               bool accumulate, cudaStream_t stream) {
  add_slice_kernel<<<blocks_for(s.rows * s.whole, 256), 256, 0, stream>>>(s, x, branch, out, scale,
                                                                          accumulate);
  check_launch("slice");
}

}  // namespace

BoundOp bind(const Slice& op, const Context& context) {
  return [columns = columns_of(context, op.x, op.y, op.first), x = context.operand(op.x),
          y = context.operand(op.y)](cudaStream_t stream) {
    take_slice(columns, x, y, 1, false, stream);
  };
}

BoundOp bind(const SliceBackward& op, const Context& context) {
  return [columns = columns_of(context, op.dx, op.dy, op.first), dy = context.operand(op.dy),
          dx = context.operand(op.dx), accumulate = op.mode == GradMode::accumulate](
             cudaStream_t stream) { add_slice(columns, {}, dy, dx, 1, accumulate, stream); };
}

BoundOp bind(const AddSlice& op, const Context& context) {
  return [columns = columns_of(context, op.x, op.branch, op.first), x = context.operand(op.x),
          branch = context.operand(op.branch), r = context.operand(op.r), scale = op.scale](
             cudaStream_t stream) { add_slice(columns, x, branch, r, scale, false, stream); };
}

BoundOp bind(const AddSliceBackward& op, const Context& context) {
  const TensorId part = op.d_branch.exists() ? op.d_branch : op.dr;
  return [columns = columns_of(context, op.dr, part, op.first), dr = context.operand(op.dr),
          dx = context.operand(op.dx), d_branch = context.operand(op.d_branch), scale = op.scale,
          add_dx = op.dx_mode == GradMode::accumulate,
          add_branch = op.d_branch_mode == GradMode::accumulate](cudaStream_t stream) {
    if (d_branch) take_slice(columns, dr, d_branch, scale, add_branch, stream);
    if (dx) add_slice(columns, dr, {}, dx, 1, add_dx, stream);
  };
}

}  // namespace fathom::engine::cuda
