// The arithmetic of a forward pass on one thread, over row-major f32.
//
// Work is divided over windows of text, never inside one, so results do not depend on the number of
// threads. Matrix products are oneDNN's.
#pragma once

#include <cstdint>

#include "pretrained/layout.h"
#include "pretrained/weights.h"

namespace fathom::pretrained {

/// y[rows, out] = x[rows, in] w^T (+ bias), w [out, in].
void multiply(const float* x, std::int64_t rows, const Matrix& w, const Vector& bias, float* y);

/// c[m, n] = scale a[m, k] op(b): b is [n, k] when `transposed`, else [k, n]; strides of rows.
void multiply_strided(std::int64_t m, std::int64_t n, std::int64_t k, float scale, const float* a,
                      std::int64_t a_stride, const float* b, std::int64_t b_stride, bool transposed,
                      float* c, std::int64_t c_stride);

/// Every row of `size` numbers normalised; x and y may be the same.
void normalise(const float* x, std::int64_t rows, std::int64_t size, NormKind kind, double epsilon,
               const NormWeights& weights, float* y);

/// u [rows, F] or [rows, 2 F] (gate, then up) to y [rows, F].
void activate(const float* u, std::int64_t rows, std::int64_t ffn, Activation kind, bool gated,
              float* y);

/// Row i of `scores` [T, T] over the keys [first, last], the others set to 0; `cap` as in Layout.
void softmax_row(float* row, std::int64_t size, std::int64_t first, std::int64_t last, float cap);

/// x += scale y.
void add_scaled(float* x, const float* y, std::int64_t count, float scale);

/// ln sum exp of `count` numbers.
double log_sum_exp(const float* x, std::int64_t count);

}  // namespace fathom::pretrained
