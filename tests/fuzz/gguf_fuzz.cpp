// Any bytes either read as a GGUF model, which then runs, or throw an error of one line.
#include "fuzz_input.h"
#include "fuzz_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const FuzzFile file(data, size);
  read_or_refuse([&] {
    pretrained::Weights weights(pretrained::open_gguf(file.path()), 1u << 20);
    run_if_small(weights);
  });
  return 0;
}
