#include "study/run_state.h"

#include <fmt/format.h>

#include <ctime>

#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "core/json_file.h"
#include "core/json_text.h"
#include "core/text.h"

namespace fathom::study {

namespace fs = std::filesystem;

RunState read_run_state(const StudyRunFolder& run) {
  RunState state;
  std::error_code error;
  if (fs::exists(run.record(), error)) {
    try {
      train::RunRecord record = train::read_run_record(run.record());
      if (record.id != run.path().filename().string()) {
        throw DataError(fmt::format("{}: is the record of run {}", run.record().string(),
                                    printable(record.id)));
      }
      state.record = std::move(record);
      state.status = state.record->status;
      state.reason = state.record->reason;
      return state;
    } catch (const DataError& broken) {
      state.damage = state.reason = broken.what();
    }
  }
  if (FileLock::holder(run.claim())) {
    state.status = RunStatus::running;
  } else if (fs::exists(run.failure(), error)) {
    state.status = RunStatus::failed;
    try {
      state.reason = read_json_file(run.failure()).value("reason", "");
    } catch (const std::exception&) {
      state.reason = "unknown: the file that gives the reason is damaged";
    }
  } else if (fs::exists(run.metrics(), error)) {
    state.status = RunStatus::interrupted;
  }
  return state;
}

void write_failure(const StudyRunFolder& run, const std::string& reason) {
  const nlohmann::ordered_json document{{"schema", "fathom.failure.v1"},
                                        {"reason", reason},
                                        {"host", host_name()},
                                        {"time", std::time(nullptr)}};
  write_file_atomically(run.failure(), json_file_text(document));
}

void clear_failure(const StudyRunFolder& run) {
  std::error_code ignored;
  fs::remove(run.failure(), ignored);
}

}  // namespace fathom::study
