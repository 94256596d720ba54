// A study as it trains, seen from its folders: rows, curves, what runs, what waits, time left.
//
// Watching only reads, when a page asks and at most once per `look_every`: runs that have a record
// are never read again, folders that do not exist cost one look, curves are read where they have
// grown. A claim is inspected as 'study status' does it, for less time than a worker waits for it.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "serve/fit_desk.h"
#include "serve/pace.h"
#include "study/study_rows.h"
#include "train/metrics_file.h"
#include "train/run_curve.h"

namespace fathom::serve {

class StudyWatch {
 public:
  /// Beyond this many, an even selection of curves over depth and size, as in the report.
  static constexpr std::size_t kMostCurves = 240;

  StudyWatch(std::filesystem::path directory, FitDesk& desk, std::chrono::milliseconds look_every);

  /// The report's document (web/schema/report.schema.json), and the version its news continue from.
  nlohmann::ordered_json document(std::int64_t& version);
  /// What has changed since version `seen` (`news` of web/schema/serve.schema.json).
  nlohmann::ordered_json news(std::int64_t seen);
  /// Its card on the overview.
  nlohmann::ordered_json card(const std::string& name);

 private:
  struct WatchedRun {
    study::RunRow row;
    const study::PlannedRun* plan = nullptr;
    std::int64_t changed = 0;              // version of the last change
    train::RunTail tail;                   // while it trains
    std::optional<train::RunCurve> curve;  // once it was asked for
  };
  using Clock = std::chrono::steady_clock;

  void look();
  void open();
  std::string stamp() const;
  void look_at(WatchedRun& run);
  void take_findings();
  double tokens_per_step(const WatchedRun& run) const;
  nlohmann::ordered_json state();
  Progress progress() const;
  nlohmann::ordered_json curve_json(WatchedRun& run) const;
  nlohmann::ordered_json curves();

  std::filesystem::path directory_;
  FitDesk& desk_;
  std::chrono::milliseconds look_every_;
  std::mutex mutex_;
  std::optional<study::Study> study_;  // absent where the spec was lost
  std::string stamp_;                  // of the files that decide which runs there are
  std::vector<WatchedRun> runs_;
  std::optional<LockHolder> holder_;
  std::optional<Clock::time_point> looked_;
  std::int64_t version_ = 0;
  std::int64_t opened_ = 0;  // version at which the list of runs was made
  FitDesk::Findings findings_;
  std::int64_t findings_changed_ = 0;
  Pace pace_;
};

}  // namespace fathom::serve
