// Any bytes either read as the rounds of an adaptive study, with shapes that can be built, or throw
// DataError of one line.
#include "core/error.h"
#include "fuzz_input.h"
#include "scratch_folder.h"
#include "study/design_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  static const ScratchFolder folder;
  folder.write("design.json", {reinterpret_cast<const char*>(data), size});
  try {
    const auto log = study::read_design_log(study::StudyFolder(folder.path()));
    if (!log) std::abort();
    for (const study::Trajectory& run : log->trajectories()) {
      if (run.shape.layers < 1 || run.shape.heads < 1 || run.shape.width % run.shape.heads != 0) {
        std::abort();
      }
    }
  } catch (const DataError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
