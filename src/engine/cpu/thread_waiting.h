// Settings for libraries' threads that must be in place before the libraries initialise.
//
// GCC's libgomp lets a waiting thread spin for milliseconds before it sleeps. With a busy neighbour
// on the same cores the spinning thread takes time from the one it waits for: measured on two
// cores, steps of 7 ms took 225 to 420 ms during a parallel build. With 1000 spins before sleeping
// they took 18 to 28 ms there, and on quiet cores 6.9 to 8.6 ms, within the noise of that
// measurement.
//
// OpenBLAS starts its threads while it is loaded, each with 128 MB of address space, and hangs or
// crashes where a limit (ulimit -v) does not allow that. Fathom calls it from one thread
// (exact/blas_threads.h).
#pragma once

namespace fathom::engine::cpu {

/// Re-executes the program with GOMP_SPINCOUNT and OPENBLAS_NUM_THREADS in its environment; does
/// nothing when the user or a parent process has already decided (OMP_WAIT_POLICY, too), or on
/// failure. Call it from .preinit_array, before any library's constructor has run.
void restart_with_thread_settings(char** arguments, char** environment);

}  // namespace fathom::engine::cpu
