// Any text either reads as the law of a study or throws DataError of one line.
#include "core/error.h"
#include "fits/study_law.h"
#include "fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const fits::StudyLaw law(fits::parse_study_law(text, "law.json"));
    if (law.info().name.empty()) std::abort();
  } catch (const DataError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
