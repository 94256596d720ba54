// Fits of watched studies. A fit takes seconds to minutes, so each is a process of its own, of the
// lowest priority, one at a time: pages are still answered and training keeps its cores.
// Nothing is written to the study: the findings come back through a scratch file.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "study/worker_process.h"

namespace fathom::serve {

class FitDesk {
 public:
  /// `command`: the program and its arguments; a study's folder and the file to write are appended.
  explicit FitDesk(std::vector<std::string> command);
  ~FitDesk();
  FitDesk(const FitDesk&) = delete;
  FitDesk& operator=(const FitDesk&) = delete;

  struct Findings {
    std::size_t finished = 0;                            // runs they are based on
    std::shared_ptr<const nlohmann::ordered_json> json;  // null: no fit has succeeded
  };

  /// The latest findings on a study; asks for new ones where more runs have ended since.
  /// After a fit its study is left alone for three times as long as the fit took.
  std::optional<Findings> findings(const std::filesystem::path& study, std::size_t finished);

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    std::filesystem::path study;
    std::size_t finished = 0;
    Clock::time_point begun;
    study::WorkerProcess process;
  };
  struct Known {
    Findings findings;
    Clock::time_point rest_until;
  };
  void collect();
  std::filesystem::path file(const char* name) const { return scratch_ / name; }

  std::vector<std::string> command_;
  std::filesystem::path scratch_;
  std::mutex mutex_;
  std::map<std::filesystem::path, Known> known_;
  std::optional<Job> job_;
};

}  // namespace fathom::serve
