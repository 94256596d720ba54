// Measured peak rates of a device: GEMMs so large that nothing else matters, and a pass over more
// memory than any cache holds. Training speeds are compared with these.
#pragma once

#include "engine/device.h"
#include "engine/plan/tensor.h"

namespace fathom::engine {

/// FLOP/s of the best of several GEMMs: of 1024 x 1024 matrices on a processor, where they stay in
/// cache, of 4096 or 8192 on a GPU.
double measure_gemm_flops(const Device& device, DType dtype);
/// Bytes read and written per second, by a[i] = b[i] + s c[i] on a processor, by a copy on a GPU.
double measure_memory_bandwidth(const Device& device);

}  // namespace fathom::engine
