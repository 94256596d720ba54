#include "core/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace fathom {

double usable_memory_bytes() {
  double bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  double group_limit = 0;
  // "max" when there is none: the number then fails to parse.
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group_limit) {
    bytes = std::min(bytes, group_limit);
  }
  return 0.9 * bytes;
}

double peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace fathom
