#include "study/run_state.h"

#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "study/file_lock.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

RunStatus status_of(train::Outcome outcome) {
  switch (outcome) {
    case train::Outcome::early_stopped:
      return RunStatus::early_stopped;
    case train::Outcome::diverged:
      return RunStatus::diverged;
    default:
      return RunStatus::finished;
  }
}

}  // namespace

std::string to_string(RunStatus status) {
  switch (status) {
    case RunStatus::pending:
      return "pending";
    case RunStatus::running:
      return "running";
    case RunStatus::interrupted:
      return "interrupted";
    case RunStatus::finished:
      return "finished";
    case RunStatus::early_stopped:
      return "early_stopped";
    case RunStatus::diverged:
      return "diverged";
    case RunStatus::failed:
      return "failed";
  }
  return "";
}

bool is_done(RunStatus status) {
  return status == RunStatus::finished || status == RunStatus::early_stopped ||
         status == RunStatus::diverged;
}

RunState read_run_state(const fs::path& folder) {
  RunState state;
  std::error_code error;
  if (fs::exists(folder / "record.json", error)) {
    try {
      state.record = train::read_run_record(folder / "record.json");
      state.status = status_of(state.record->outcome);
      state.reason = state.record->reason;
      return state;
    } catch (const DataError& broken) {
      state.broken_record = true;
      state.reason = broken.what();
    }
  }
  if (FileLock::holder(claim_path(folder))) {
    state.status = RunStatus::running;
  } else if (fs::exists(folder / "failed.json", error)) {
    state.status = RunStatus::failed;
    try {
      state.reason = read_json_file(folder / "failed.json").value("reason", "");
    } catch (const std::exception&) {
      state.reason = "unknown: failed.json is broken";
    }
  } else if (fs::exists(folder / "metrics.jsonl", error)) {
    state.status = RunStatus::interrupted;
  }
  return state;
}

RunTail read_run_tail(const fs::path& folder) {
  RunTail tail;
  std::ifstream stream(folder / "metrics.jsonl", std::ios::binary | std::ios::ate);
  if (!stream) return tail;
  constexpr std::streamoff kWindow = 1 << 16;
  const std::streamoff size = stream.tellg();
  stream.seekg(std::max<std::streamoff>(0, size - kWindow));
  std::string text(static_cast<std::size_t>(std::min(size, kWindow)), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  std::size_t end = text.rfind('\n');
  while (end != std::string::npos && end > 0) {  // from the last whole line backwards
    const std::size_t before = text.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const auto line =
        nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                              text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (line.is_object()) {
      if (line.contains("eval_loss")) {
        if (tail.eval_loss == 0 && line["eval_loss"].is_number())
          tail.eval_loss = line["eval_loss"];
      } else if (tail.step == 0) {
        tail.step = line.value("step", std::int64_t{0});
        if (line.contains("loss") && line["loss"].is_number()) tail.loss = line["loss"];
      }
    }
    if (tail.step > 0 && (tail.eval_loss > 0 || before == std::string::npos)) break;
    end = before;
  }
  return tail;
}

void write_failure(const fs::path& folder, const std::string& reason) {
  const nlohmann::ordered_json document{{"schema", "fathom.failure.v1"},
                                        {"reason", reason},
                                        {"host", host_name()},
                                        {"time", std::time(nullptr)}};
  write_file_atomically(
      folder / "failed.json",
      document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void clear_failure(const fs::path& folder) {
  std::error_code ignored;
  fs::remove(folder / "failed.json", ignored);
}

fs::path claim_path(const fs::path& folder) {
  return folder / "claim";
}

}  // namespace fathom::study
