// Any bytes either read as a file of computed ranks or throw an error of one line.
#include "exact/rank_records.h"
#include "fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const FuzzFile file(data, size);
  read_or_refuse([&] {
    const exact::RankRecords records(file.path());
    if (records.find({}, {}) != nullptr && records.size() == 0) std::abort();
  });
  return 0;
}
