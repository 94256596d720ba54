#include "engine/cpu/thread_waiting.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace fathom::engine::cpu {

void restart_with_short_waits(char** arguments) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  // The file itself, not the link: the process keeps its name.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || setenv("GOMP_SPINCOUNT", "1000", 1) != 0) return;
  execv(program.c_str(), arguments);
}

}  // namespace fathom::engine::cpu
