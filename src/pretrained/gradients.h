// Derivatives of the functions of kernels.h, row-major f32 on one thread.
#pragma once

#include "pretrained/kernels.h"

namespace fathom::pretrained {

/// Rows x before a norm and gradients of its output become gradients of x, in place.
void norm_gradient(const float* x, std::int64_t rows, std::int64_t size, NormKind kind,
                   double epsilon, const Vector& gain, float* gradient);

/// u as activate() reads it, dy [rows, F]; du as u.
void activation_gradient(const float* u, const float* dy, std::int64_t rows, std::int64_t ffn,
                         Activation kind, bool gated, float* du);

/// dx [rows, in] = dy [rows, out] w, w [out, in].
void input_gradient(const float* dy, std::int64_t rows, const Matrix& w, float* dx);

}  // namespace fathom::pretrained
