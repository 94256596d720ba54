// Any bytes either read as the parts of a lab run and as a verdict, or throw an error of one line.
#include "fuzz_input.h"
#include "lab/frame/records.h"
#include "scratch_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const ScratchFolder folder;
  folder.write("parts.jsonl", text);
  folder.write("results/corollary-1.json", text);
  read_or_refuse([&] { lab::LabRecords records(folder.path()); });
  read_or_refuse([&] {
    if (lab::read_results(folder.path()).size() != 1) std::abort();
  });
  return 0;
}
