// The speed of light of this processor, measured: a large product that stays in cache, and a sum
// of two arrays that does not.
#pragma once

#include "engine/plan/tensor.h"

namespace fathom::engine {

/// FLOP/s of the best of several products of 1024 x 1024 matrices.
double measure_product_flops(int threads, DType dtype);
/// Bytes read and written per second by a[i] = b[i] + s c[i] over 256 MiB an array.
double measure_memory_bandwidth(int threads);

}  // namespace fathom::engine
