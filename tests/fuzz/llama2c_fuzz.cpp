// Any bytes either read as a llama2.c model beside its tokenizer, which then run, or throw an error
// of one line. The first two bytes say how long the tokenizer is, which comes first.
#include "fuzz_input.h"
#include "fuzz_model.h"
#include "scratch_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + 2), size - 2);
  const std::string_view tokenizer = rest.substr(0, data[0] + 256u * data[1]);
  static const ScratchFolder folder;
  folder.write("tokenizer.bin", tokenizer);
  folder.write("model.bin", rest.substr(tokenizer.size()));
  read_or_refuse([&] {
    pretrained::Checkpoint checkpoint = pretrained::open_llama2c(folder / "model.bin");
    if (checkpoint.tokenizer) checkpoint.tokenizer->encode(" the  quick\nfox 123 caf\xC3\xA9");
    pretrained::Weights weights(std::move(checkpoint), 1u << 20);
    run_if_small(weights);
  });
  return 0;
}
