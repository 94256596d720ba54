// Measured peak rates of a GPU (engine/peak.h).
#pragma once

#include "engine/plan/tensor.h"

namespace fathom::engine::cuda {

double measure_gemm_flops(int device, DType dtype);
double measure_memory_bandwidth(int device);

}  // namespace fathom::engine::cuda
