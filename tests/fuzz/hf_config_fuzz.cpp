// Any bytes either read as the config.json of a model or throw an error of one line.
#include "core/error.h"
#include "fuzz_input.h"
#include "shape/hf_config.h"
#include "shape/parameters.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const FuzzFile file(data, size);
  try {
    const HfModel model = read_hf_config(file.path());
    volatile auto kept = count_parameters(model.shape).total();
    (void)kept;
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
