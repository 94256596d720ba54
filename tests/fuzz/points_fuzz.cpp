// Any bytes either read as a table of runs with sane numbers, or throw an error of one line.
#include <cmath>

#include "core/error.h"
#include "fits/run_points_csv.h"
#include "fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const FuzzFile file(data, size);
  try {
    for (const fits::RunPoint& point : fits::read_run_points(file.path())) {
      if (!(point.loss > 0 && std::isfinite(point.loss) && point.params > 0)) std::abort();
    }
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
