// Any text either reads as a study spec (with or without [design]) or a run spec, or throws an
// error of one line. What was read can be written and read again.
#include "core/error.h"
#include "fuzz_input.h"
#include "study/study_spec.h"
#include "train/run_spec.h"

namespace {

using namespace fathom;

template <typename Read>
void try_reading(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_reading([&] {
    const study::StudySpec spec = study::read_study_spec_text(text, "study.toml");
    if (spec.design && spec.design->text().empty()) std::abort();
    to_toml(spec.run_spec(spec.first_shape(), 10, 1));
  });
  try_reading([&] {
    const train::RunSpec spec = train::read_run_spec_text(text, "run.toml");
    const std::string written = to_toml(spec);
    if (to_toml(train::read_run_spec_text(written, "written.toml")) != written) std::abort();
  });
  return 0;
}
