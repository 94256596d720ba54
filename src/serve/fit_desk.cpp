#include "serve/fit_desk.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/error.h"
#include "core/folders.h"
#include "core/json_text.h"

namespace fathom::serve {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFindings = "findings.json";
constexpr const char* kLog = "fit.log";

}  // namespace

FitDesk::FitDesk(std::vector<std::string> command)
    : command_(std::move(command)), scratch_(make_temporary_folder("fathom-serve")) {}

FitDesk::~FitDesk() {
  if (job_) {
    job_->process.terminate();
    while (!job_->process.poll()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::error_code ignored;
  fs::remove_all(scratch_, ignored);
}

std::optional<FitDesk::Findings> FitDesk::findings(const fs::path& study, std::size_t finished) {
  const std::lock_guard lock(mutex_);
  collect();
  const auto found = known_.find(study);
  const bool due = found == known_.end() ? finished > 0
                                         : finished != found->second.findings.finished &&
                                               Clock::now() >= found->second.rest_until;
  if (!job_ && due) {
    std::vector<std::string> command = command_;
    command.push_back(study.string());
    command.push_back(file(kFindings).string());
    job_.emplace(Job{study, finished, Clock::now(), study::WorkerProcess(command, file(kLog))});
  }
  if (found == known_.end()) return {};
  return found->second.findings;
}

void FitDesk::collect() {
  if (!job_) return;
  const auto end = job_->process.poll();
  if (!end) return;
  Known& known = known_[job_->study];
  const Clock::time_point now = Clock::now();
  known.rest_until = now + 3 * (now - job_->begun);
  Findings& findings = known.findings;
  findings.finished = job_->finished;
  if (end->code == 0 && end->signal == 0) {
    try {
      findings.json = std::make_shared<const Json>(read_json_file(file(kFindings)));
    } catch (const DataError&) {
      // As if the fit had failed: the page keeps what was known before.
    }
  }
  job_.reset();
}

}  // namespace fathom::serve
