// Is a GEMM with a norm in its epilogue faster than the two separately? The fusion pass asks before
// memory is laid out; both are timed on memory allocated for the shape, and the answer is kept in
// the file of GEMM algorithms.
#pragma once

#include <vector>

#include "engine/cuda/module.h"

namespace fathom::engine::cuda {

std::vector<bool> measure_fusions(const std::vector<LinearNormShape>& shapes,
                                  const CudaOptions& options);

}  // namespace fathom::engine::cuda
