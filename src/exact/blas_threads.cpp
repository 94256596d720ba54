// Separate from field_rank.cpp, because FFLAS-FFPACK declares the cblas functions itself and its
// declarations clash with OpenBLAS's header.
#include "exact/blas_threads.h"

#include <cblas.h>

namespace fathom::exact {

void use_one_blas_thread() {
  openblas_set_num_threads(1);
}

}  // namespace fathom::exact
