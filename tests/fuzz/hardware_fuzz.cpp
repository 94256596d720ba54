// Any text either reads as a hardware profile, with rates that can be divided by, or throws an
// error of one line.
#include <cmath>

#include "fuzz_input.h"
#include "shape/hardware.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const FuzzFile file(data, size);
  read_or_refuse([&] {
    const Hardware hardware = find_hardware(file.path().string());
    const auto sane = [](double rate) { return rate > 0 && std::isfinite(rate); };
    if (!sane(hardware.matmul_rate()) || !sane(hardware.copy_rate()) ||
        hardware.multiprocessors < 1) {
      std::abort();
    }
  });
  return 0;
}
