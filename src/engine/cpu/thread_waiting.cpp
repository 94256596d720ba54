#include "engine/cpu/thread_waiting.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace fathom::engine::cpu {

void restart_with_short_waits(char** arguments) {
  const bool waits_chosen =
      std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr;
  const bool blas_chosen = std::getenv("OPENBLAS_NUM_THREADS") != nullptr;
  if (waits_chosen && blas_chosen) return;
  // The file itself, not the link: the process keeps its name.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || (!waits_chosen && setenv("GOMP_SPINCOUNT", "1000", 1) != 0)) return;
  // OpenBLAS starts its threads while it is loaded, each with 128 MB of address space, and hangs
  // where a limit (ulimit -v) refuses them. Fathom calls it from one thread (exact/blas_threads.h).
  if (!blas_chosen && setenv("OPENBLAS_NUM_THREADS", "1", 1) != 0) return;
  execv(program.c_str(), arguments);
}

}  // namespace fathom::engine::cpu
