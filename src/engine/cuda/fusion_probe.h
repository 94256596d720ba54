// Is a GEMM with a norm in its epilogue faster than the two apart? Asked by the fusion pass before
// memory is laid out, answered by timing both on memory of the shape's own, remembered in the file
// of GEMM algorithms.
#pragma once

#include <vector>

#include "engine/cuda/module.h"

namespace fathom::engine::cuda {

std::vector<bool> measure_fusions(const std::vector<LinearNormShape>& shapes,
                                  const CudaOptions& options);

}  // namespace fathom::engine::cuda
