#include "engine/cpu/memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "core/error.h"

namespace fathom::engine::cpu {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr double kMebibyte = 1 << 20;

double group_limit() {
  double bytes = 0;  // without a limit the file says "max", which fails to parse
  return std::ifstream("/sys/fs/cgroup/memory.max") >> bytes ? bytes : kAny;
}

}  // namespace

double available_bytes(const std::string& meminfo, double group_limit) {
  double free = kAny, swap = 0;
  std::istringstream lines(meminfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    double kibibytes = 0;
    if (!(words >> name >> kibibytes)) continue;
    if (name == "MemAvailable:") free = 1024 * kibibytes;
    if (name == "SwapFree:") swap = 1024 * kibibytes;
  }
  return std::min(free + swap, group_limit);
}

void require_memory(std::int64_t bytes) {
  std::ifstream stream("/proc/meminfo");
  const std::string meminfo{std::istreambuf_iterator<char>(stream), {}};
  const double available = available_bytes(meminfo, group_limit());
  if (static_cast<double>(bytes) <= available) return;
  throw DeviceError(
      fmt::format("not enough memory for this model: it takes {} MiB, {:.0f} are available; train "
                  "a smaller model, batch or context",
                  bytes >> 20, available / kMebibyte));
}

}  // namespace fathom::engine::cpu
