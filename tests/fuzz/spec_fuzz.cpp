// Any text either reads as a study spec (with or without [design]) or a run spec, or throws an
// error of one line. What was read can be written and read again.
#include "fuzz_input.h"
#include "study/study_spec.h"
#include "train/run_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] {
    const study::StudySpec spec = study::read_study_spec_text(text, "study.toml");
    if (spec.design && spec.design->text().empty()) std::abort();
    to_toml(spec.run_spec(spec.first_shape(), 10, 1));
  });
  read_or_refuse([&] {
    const train::RunSpec spec = train::read_run_spec_text(text, "run.toml");
    const std::string written = to_toml(spec);
    if (to_toml(train::read_run_spec_text(written, "written.toml")) != written) std::abort();
  });
  return 0;
}
