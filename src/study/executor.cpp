#include "study/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"

namespace fathom::study {
namespace {

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

double share(const PlannedRun& run, std::int64_t step) {
  return as_double(step) / as_double(run.spec.schedule.steps);
}

}  // namespace

StudyPace::StudyPace(const std::vector<const PlannedRun*>& runs) : started_ns_(now_ns()) {
  for (const PlannedRun* run : runs) left_flops_ += run->flops;
}

double StudyPace::elapsed() const {
  return as_double(now_ns() - started_ns_) * 1e-9;
}

void StudyPace::begin(const PlannedRun& run, std::int64_t first_step) {
  first_steps_.emplace_back(&run, first_step);
}

void StudyPace::finish(const PlannedRun& run) {
  const auto entry = std::find_if(first_steps_.begin(), first_steps_.end(),
                                  [&](const auto& e) { return e.first == &run; });
  const std::int64_t first = entry == first_steps_.end() ? 0 : entry->second;
  if (entry != first_steps_.end()) first_steps_.erase(entry);
  done_flops_ += run.flops * (1 - share(run, first));
  left_flops_ -= run.flops;
}

void StudyPace::fill(Snapshot& snapshot) const {
  snapshot.elapsed_seconds = elapsed();
  double done = done_flops_, left = left_flops_;
  for (const RunningModel& model : snapshot.running) {
    const auto entry = std::find_if(first_steps_.begin(), first_steps_.end(),
                                    [&](const auto& e) { return e.first == model.run; });
    const std::int64_t first = entry == first_steps_.end() ? 0 : entry->second;
    done += model.run->flops * std::max(0.0, share(*model.run, model.tail.step - first));
    left -= model.run->flops * share(*model.run, model.tail.step);
  }
  constexpr double kEnoughSeconds = 2;
  if (done > 0 && snapshot.elapsed_seconds > kEnoughSeconds) {
    snapshot.left_seconds = std::max(0.0, left) * snapshot.elapsed_seconds / done;
  }
}

RunningModel Watched::look(const StudyFolder& folder) const {
  RunningModel model{.run = run, .tail = train::read_run_tail(folder.run(run->id).metrics())};
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since;
  const std::int64_t steps = model.tail.step - first_step;
  if (steps > 0 && time.count() > 0) {
    model.tokens_per_second = as_double(steps * run->spec.tokens_per_step()) / time.count();
  }
  return model;
}

Tally::Tally(const Study& study, const std::vector<const PlannedRun*>& runs,
             const ExecutorEvents& events)
    : study_(study), events_(events), total_(runs.size()), ledger_(study), pace_(runs) {
  for (const PlannedRun* run : runs) {
    if (is_done(read_run_state(study.folder.run(run->id)).status)) {
      ++result_.done;
      pace_.begin(*run, run->spec.schedule.steps);
      pace_.finish(*run);
    } else {
      open_.push_back(run);
    }
  }
  if (events_.begun) events_.begun(total_, result_.done);
  tell_ledger();
}

void Tally::tell_ledger() {
  if (ledger_.problem() == ledger_told_) return;
  ledger_told_ = ledger_.problem();
  if (ledger_told_.empty()) return;
  note(fmt::format("the study's tables are out of date: {}; training continues", ledger_told_));
}

Watched Tally::begin(const PlannedRun& run) {
  const std::int64_t step = train::read_run_tail(study_.folder.run(run.id).metrics()).step;
  pace_.begin(run, step);
  return {&run, step, std::chrono::steady_clock::now()};
}

void Tally::end(const PlannedRun& run, const RunState& state) {
  ++(is_done(state.status) ? result_.done : result_.failed);
  pace_.finish(run);
  ledger_.update(run, state);
  tell_ledger();
  if (events_.ended) events_.ended(run, state);
}

void Tally::tick(std::vector<RunningModel> running, const std::string& note) const {
  if (!events_.tick) return;
  Snapshot snapshot;
  snapshot.total = total_;
  snapshot.done = result_.done;
  snapshot.failed = result_.failed;
  snapshot.running = std::move(running);
  snapshot.note = note;
  pace_.fill(snapshot);
  events_.tick(snapshot);
}

void Tally::note(const std::string& text) const {
  if (events_.note) events_.note(text);
}

}  // namespace fathom::study
