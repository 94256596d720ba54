// How OpenMP's threads wait for each other.
//
// GCC's libgomp lets a waiting thread spin for milliseconds before it sleeps. With a busy neighbour
// on the same cores the spinning thread takes time from the one it waits for: measured on two
// cores, steps of 7 ms took 225 to 420 ms beside a parallel build. With 1000 spins before sleeping
// they took 18 to 28 ms there, and on quiet cores 6.9 to 8.6 ms, within the noise of that
// measurement.
#pragma once

namespace fathom::engine::cpu {

/// libgomp reads its settings while the program is loaded, before main(), so the only way to set
/// them from inside is to start the program again. Call it first in main(); it does nothing when
/// the user or a parent process has already decided (OMP_WAIT_POLICY, GOMP_SPINCOUNT), or on
/// failure.
void restart_with_short_waits(char** arguments);

}  // namespace fathom::engine::cpu
