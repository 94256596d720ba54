#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {

void run(const Linear& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const std::int64_t outs = context.tensor(op.weight).rows;
  const double* bias = context.data(op.bias);
  for (std::int64_t n = 0; n < x.rows; ++n) {
    for (std::int64_t o = 0; o < outs; ++o) {
      double sum = 0;
      for (std::int64_t i = 0; i < x.cols; ++i) {
        sum += context.data(op.x)[n * x.cols + i] * context.data(op.weight)[o * x.cols + i];
      }
      // Added last, as by an activation that has taken over the bias (plan/fusion.h).
      context.data(op.y)[n * outs + o] = sum + (bias ? bias[o] : 0);
    }
  }
}

void run(const LinearBackward& op, const Context& context) {
  const Tensor& x = context.tensor(op.x);
  const std::int64_t rows = x.rows, ins = x.cols, outs = context.tensor(op.weight).rows;
  const double* dy = context.data(op.dy);
  for (std::int64_t n = 0; op.dx.exists() && n < rows; ++n) {
    for (std::int64_t i = 0; i < ins; ++i) {
      double sum = 0;
      for (std::int64_t o = 0; o < outs; ++o) {
        sum += dy[n * outs + o] * context.data(op.weight)[o * ins + i];
      }
      put(&context.data(op.dx)[n * ins + i], sum, op.dx_mode);
    }
  }
  for (std::int64_t o = 0; o < outs; ++o) {
    for (std::int64_t i = 0; op.d_weight.exists() && i < ins; ++i) {
      double sum = 0;
      for (std::int64_t n = 0; n < rows; ++n) {
        sum += dy[n * outs + o] * context.data(op.x)[n * ins + i];
      }
      put(&context.data(op.d_weight)[o * ins + i], sum, op.d_weight_mode);
    }
    if (!op.d_bias.exists()) continue;
    double sum = 0;
    for (std::int64_t n = 0; n < rows; ++n) sum += dy[n * outs + o];
    put(&context.data(op.d_bias)[o], sum, op.d_bias_mode);
  }
}

}  // namespace fathom::engine::ref
