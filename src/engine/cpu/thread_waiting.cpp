#include "engine/cpu/thread_waiting.h"

#include <unistd.h>

#include <climits>
#include <cstddef>
#include <cstring>

namespace fathom::engine::cpu {
namespace {

bool names(const char* entry, const char* variable) {
  const std::size_t length = std::strlen(variable);
  return std::strncmp(entry, variable, length) == 0 && entry[length] == '=';
}

}  // namespace

void restart_with_thread_settings(char** arguments, char** environment) {
  bool waits_chosen = false, blas_chosen = false;
  std::size_t size = 0;
  for (; environment[size] != nullptr; ++size) {
    const char* entry = environment[size];
    waits_chosen |= names(entry, "OMP_WAIT_POLICY") || names(entry, "GOMP_SPINCOUNT");
    blas_chosen |= names(entry, "OPENBLAS_NUM_THREADS");
  }
  if (waits_chosen && blas_chosen) return;
  // The file itself, not the link: the process keeps its name.
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return;
  program[length] = '\0';
  // No memory is allocated: the C library is not set up this early. The kernel limits the number of
  // entries to what the stack can hold.
  char spins[] = "GOMP_SPINCOUNT=1000", blas[] = "OPENBLAS_NUM_THREADS=1";
  char** extended = static_cast<char**>(__builtin_alloca((size + 3) * sizeof(char*)));
  std::memcpy(extended, environment, size * sizeof(char*));
  if (!waits_chosen) extended[size++] = spins;
  if (!blas_chosen) extended[size++] = blas;
  extended[size] = nullptr;
  execve(program, arguments, extended);
}

}  // namespace fathom::engine::cpu
