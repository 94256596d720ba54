// Any bytes either read as a GGUF model, which then runs, or throw an error of one line.
#include "core/error.h"
#include "fuzz_input.h"
#include "pretrained/forward.h"

namespace {

constexpr std::int64_t kMostNumbers = 1
                                      << 16;  // larger models take the fuzzer's time, not its paths

void run(fathom::pretrained::Weights& weights) {
  using namespace fathom;
  const pretrained::Layout& layout = weights.layout();
  if (weights.parameter_count() > kMostNumbers || layout.depth() > 4) return;
  const std::vector<data::TokenId> ids{0, 1, 0};
  const pretrained::Forward forward(weights, 3);
  pretrained::Scratch scratch;
  std::vector<float> h(3 * static_cast<std::size_t>(layout.width));
  std::vector<float> losses(3);
  forward.embed(ids, h.data());
  for (std::int64_t l = 0; l < layout.depth(); ++l) {
    forward.run_layer(*weights.layer(l), l, h.data(), scratch);
  }
  forward.losses(h.data(), ids, scratch, losses.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const FuzzFile file(data, size);
  try {
    pretrained::Weights weights(pretrained::open_gguf(file.path()), 1u << 20);
    run(weights);
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
