// Any bytes either read as a record and as lines of metrics, or throw DataError of one line.
#include "core/error.h"
#include "fuzz_input.h"
#include "train/metrics_file.h"
#include "train/run_record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const FuzzFile file(data, size);
  try {
    const train::RunRecord record = train::read_run_record(file.path());
    if (!is_done(record.status)) std::abort();
  } catch (const DataError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  std::size_t events = 0;
  train::read_metrics(file.path(), [&](const train::MetricsEvent& event) {
    events += event.training.has_value() + event.held_out.has_value();
  });
  train::read_evaluations(file.path(), [&](std::int64_t, const train::Evaluation&) { ++events; });
  train::read_run_tail(file.path());
  train::damaged_metrics(file.path(), events);
  return 0;
}
