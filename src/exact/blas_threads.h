// Limits BLAS to one thread for the whole program.
#pragma once

namespace fathom::exact {

void use_one_blas_thread();

}  // namespace fathom::exact
