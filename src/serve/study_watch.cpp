#include "serve/study_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "report/report_document.h"

namespace fathom::serve {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using study::RunStatus;

/// At most this many waiting runs are named.
constexpr std::size_t kNamedNext = 5;

/// Versions keep rising when the program is restarted, so that open pages notice.
std::int64_t first_version() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string stamp_of(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  return error ? "-" : std::to_string(time.time_since_epoch().count());
}

}  // namespace

StudyWatch::StudyWatch(fs::path directory, FitDesk& desk, std::chrono::milliseconds look_every)
    : directory_(std::move(directory)),
      desk_(desk),
      look_every_(look_every),
      version_(first_version()) {}

std::string StudyWatch::stamp() const {
  const study::StudyFolder folder(directory_);
  std::string text =
      stamp_of(folder.spec()) + stamp_of(folder.design()) + stamp_of(folder.tokens());
  // Without planned ids only the folders show which runs there are.
  if (!study_ || !study_->has_tokens) text += stamp_of(folder.runs());
  return text;
}

void StudyWatch::open() {
  const study::StudyFolder folder(directory_);
  study_.reset();
  runs_.clear();
  if (fs::exists(folder.spec())) study_ = study::open_study(directory_);
  stamp_ = stamp();
  std::unordered_map<std::string, const study::PlannedRun*> plans;
  if (study_) {
    for (const study::PlannedRun& run : study_->runs) plans[run.id] = &run;
  }
  opened_ = ++version_;
  for (study::RunRow& row :
       study_ ? study::collect_rows(*study_) : study::collect_rows(directory_)) {
    const auto plan = plans.find(row.id);
    WatchedRun& run = runs_.emplace_back();
    run.plan = plan == plans.end() || row.id.empty() ? nullptr : plan->second;
    run.row = std::move(row);
    run.changed = opened_;
  }
}

void StudyWatch::look() {
  const Clock::time_point now = Clock::now();
  if (looked_ && now - *looked_ < look_every_) return;
  if (!looked_ || stamp() != stamp_) open();
  const study::StudyFolder folder(directory_);
  ++version_;
  for (WatchedRun& run : runs_) {
    if (!is_done(run.row.status) && !run.row.id.empty()) look_at(run);
  }
  holder_ = FileLock::holder(folder.lock());
  take_findings();
  looked_ = Clock::now();
}

void StudyWatch::look_at(WatchedRun& run) {
  const study::StudyRunFolder folder = study::StudyFolder(directory_).run(run.row.id);
  std::error_code error;
  if (!fs::exists(folder.path(), error)) return;
  const study::RunState state = study::read_run_state(folder);
  const train::RunTail before = run.tail;
  if (state.status == RunStatus::running) run.tail = train::read_run_tail(folder.metrics());
  const bool same = state.status == run.row.status && state.reason == run.row.reason &&
                    run.tail.step == before.step && run.tail.eval_loss == before.eval_loss;
  if (same) return;
  const bool in_spec = run.row.in_spec;
  const std::string id = run.row.id;
  run.row = study::row_of(run.plan ? *run.plan : study::PlannedRun{}, state);
  run.row.in_spec = in_spec;
  run.row.id = id;
  run.changed = version_;
}

void StudyWatch::take_findings() {
  const auto finished = std::count_if(runs_.begin(), runs_.end(), [](const WatchedRun& run) {
    return run.row.in_spec && has_result(run.row.status);
  });
  const auto found = desk_.findings(directory_, as_size(finished));
  if (!found || !found->json || found->json == findings_.json) return;
  findings_ = *found;
  findings_changed_ = version_;
}

double StudyWatch::tokens_per_step(const WatchedRun& run) const {
  if (run.plan) return as_double(run.plan->spec.tokens_per_step());
  return run.row.steps == 0 ? 0 : as_double(run.row.tokens) / as_double(run.row.steps);
}

Json StudyWatch::curve_json(WatchedRun& run) const {
  if (!run.curve) run.curve.emplace(study::StudyFolder(directory_).run(run.row.id).metrics());
  run.curve->read_on();
  return report::curve_json(run.row.id, *run.curve, tokens_per_step(run));
}

/// Those of runs that train now, and an even selection of the others.
Json StudyWatch::curves() {
  std::vector<WatchedRun*> others;
  Json list = Json::array();
  const auto add = [&](WatchedRun& run) {
    Json curve = curve_json(run);
    if (!curve.is_null()) list.push_back(std::move(curve));
  };
  for (WatchedRun& run : runs_) {
    if (run.row.id.empty() || run.row.status == RunStatus::pending) continue;
    if (run.row.status == RunStatus::running) {
      add(run);
    } else {
      others.push_back(&run);
    }
  }
  std::stable_sort(others.begin(), others.end(), [](const WatchedRun* a, const WatchedRun* b) {
    return std::pair(a->row.layers, a->row.non_embedding) <
           std::pair(b->row.layers, b->row.non_embedding);
  });
  const std::size_t most = std::min(others.size(), kMostCurves);
  for (std::size_t i = 0; i < most; ++i) add(*others[i * others.size() / most]);
  return list;
}

Progress StudyWatch::progress() const {
  Progress now;
  now.seconds = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  double timed_flops = 0, timed_seconds = 0;
  for (const WatchedRun& run : runs_) {
    if (!run.plan) continue;
    const double steps = as_double(run.plan->spec.schedule.steps);
    const bool done = is_done(run.row.status);
    const double share = done ? 1 : std::min(1.0, as_double(run.tail.step) / steps);
    now.done_flops += share * run.plan->flops;
    now.left_flops += (1 - share) * run.plan->flops;
    now.running += run.row.status == RunStatus::running;
    if (done && run.row.seconds > 0 && run.row.steps > 0) {
      timed_flops += run.plan->flops * as_double(run.row.timed_steps) / as_double(run.row.steps);
      timed_seconds += run.row.seconds;
    }
  }
  if (timed_seconds > 0) now.run_flops_per_second = timed_flops / timed_seconds;
  return now;
}

Json StudyWatch::state() {
  std::size_t done = 0, failed = 0, waiting = 0;
  Json running = Json::array(), next = Json::array();
  const auto label = [](const WatchedRun& run) {
    return fmt::format("{} × {}, seed {}", run.row.layers, run.row.width, run.row.seed);
  };
  for (const WatchedRun& run : runs_) {
    if (!run.row.in_spec) continue;
    if (is_done(run.row.status)) {
      ++done;
    } else if (run.row.status == RunStatus::running) {
      running.push_back({{"id", run.row.id},
                         {"name", label(run)},
                         {"step", run.tail.step},
                         {"steps", run.plan ? run.plan->spec.schedule.steps : run.row.steps},
                         {"loss", run.tail.loss > 0 ? Json(run.tail.loss) : Json(nullptr)}});
    } else {
      failed += run.row.status == RunStatus::failed;
      ++waiting;
      if (next.size() < kNamedNext) next.push_back(label(run));
    }
  }
  Json by = nullptr;
  if (holder_) by = fmt::format("process {} on {}", holder_->pid, holder_->host);
  const std::optional<double> left = pace_.left(progress());
  return {{"by", by},
          {"runs", done + running.size() + waiting},
          {"done", done},
          {"failed", failed},
          {"waiting", waiting},
          {"running", running},
          {"next", next},
          {"left_seconds", number_or_null(left)},
          {"decided",
           findings_.json ? findings_.json->value("decided", Json::array()) : Json(Json::array())}};
}

Json StudyWatch::document(std::int64_t& version) {
  const std::lock_guard lock(mutex_);
  look();
  std::vector<study::RunRow> rows;
  for (const WatchedRun& run : runs_) rows.push_back(run.row);
  const Json none = nullptr;
  const Json& findings = findings_.json ? *findings_.json : none;
  version = version_;
  return study_ ? report::assemble_report(*study_, rows, findings, curves())
                : report::assemble_report(directory_.filename().string(), rows, findings, curves());
}

Json StudyWatch::news(std::int64_t seen) {
  const std::lock_guard lock(mutex_);
  look();
  Json rows = Json::array(), curves = Json::array();
  const bool other = seen < opened_;
  for (WatchedRun& run : runs_) {
    if (other || run.changed <= seen) continue;
    rows.push_back(study::row_json(run.row));
    if (run.row.id.empty()) continue;
    if (Json curve = curve_json(run); !curve.is_null()) curves.push_back(std::move(curve));
  }
  Json findings = nullptr;
  if (findings_.json && findings_changed_ > seen) findings = *findings_.json;
  return {{"schema", "fathom.news.v1"}, {"version", version_}, {"reload", other},
          {"state", state()},           {"runs", rows},        {"curves", curves},
          {"findings", findings}};
}

Json StudyWatch::card(const std::string& name) {
  const std::lock_guard lock(mutex_);
  try {
    look();
  } catch (const Error& error) {
    return {{"name", name},     {"title", name},  {"question", ""}, {"problem", error.what()},
            {"state", nullptr}, {"best", nullptr}};
  }
  const study::RunRow* best = nullptr;
  for (const WatchedRun& run : runs_) {
    if (!std::isfinite(run.row.final_loss)) continue;
    if (best == nullptr || run.row.final_loss < best->final_loss) best = &run.row;
  }
  Json json{{"name", name},
            {"title", study_ && !study_->spec.title.empty() ? study_->spec.title : name},
            {"question", study_ ? study_->spec.question : ""},
            {"problem", nullptr},
            {"state", state()},
            {"best", nullptr}};
  if (best != nullptr) {
    json["best"] = {{"layers", best->layers}, {"width", best->width}, {"loss", best->final_loss}};
  }
  return json;
}

}  // namespace fathom::serve
