#include "train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "core/folders.h"
#include "core/json_file.h"
#include "core/seconds_since.h"
#include "core/toml_file.h"
#include "model/transformer.h"
#include "train/checkpoint_notes.h"
#include "train/divergence_watch.h"
#include "train/metrics_file.h"
#include "train/provenance.h"
#include "train/run_folder.h"
#include "train/step_cost.h"

namespace fathom::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kStepsAhead = 4;
constexpr std::chrono::seconds kStopPatience(1);

/// Null tokens: the spec has a task.
std::string id_of(const RunSpec& spec, const data::TokenSet* tokens) {
  return run_id(spec, tokens == nullptr ? Hash128{} : tokens->hash());
}

RunSpec resolved_for(const RunSpec& spec, const data::TokenSet* tokens) {
  return tokens == nullptr ? spec : resolve(spec, *tokens);
}

/// What is known before the first step.
RunRecord begin_record(const RunSpec& spec, const data::TokenSet* tokens,
                       const model::Transformer& model) {
  RunRecord record;
  record.id = id_of(spec, tokens);
  record.layers = spec.model.layers;
  record.width = spec.model.width;
  record.heads = spec.model.heads;
  record.seed = spec.seed;
  record.parameters = model.parameter_count();
  record.non_embedding = model.non_embedding_count();
  record.best_loss = INFINITY;
  return record;
}

class Run {
 public:
  Run(const RunSpec& spec, const data::TokenSet* tokens, const RunOptions& options)
      : spec_(spec),
        options_(options),
        folder_(options.directory),
        trainer_(spec, tokens),
        metrics_(folder_.metrics()),
        record_(begin_record(spec, tokens, trainer_.model())),
        step_flops_(spec.accumulation * training_flops(trainer_.model().plan)) {
    ahead_ = options.steps_ahead;
    if (options.stop_in_step) abandon_ = [this] { return stopped_long_ago(); };
    if (ahead_ < 0) ahead_ = spec.device == engine::DeviceKind::cuda ? kStepsAhead : 0;
  }

  RunRecord go() {
    try {
      return train();
    } catch (const StoppedError&) {  // in the middle of a step, which is as if it had not begun
      return interrupt();
    }
  }

 private:
  RunRecord train() {
    const bool ended = restore();
    first_ = trainer_.steps_done();
    if (ended) {
      if (has_result(record_.status)) record_.scores = trainer_.evaluate().scores;
      return write_record();
    }
    bool stopping = false;
    while (trainer_.steps_done() < spec_.schedule.steps) {
      if (!stopping) start_steps();
      const StepResult result = trainer_.finish_step();
      const std::int64_t step = trainer_.steps_done();
      metrics_.add(step, result);
      report(result);
      if (const std::string reason = watch_.look(result); !reason.empty()) {
        record_.reason = fmt::format("step {}: {}", step, reason);
        trainer_.forget_pending();
        return finish(RunStatus::diverged);
      }
      const bool last = step == spec_.schedule.steps;
      if (!last && is_due(step, spec_.eval_every) && !evaluate()) {
        return finish(RunStatus::early_stopped);
      }
      if (!last && is_due(step, spec_.checkpoint_every)) save_checkpoint();
      if (step == options_.stem_step) save(folder_.stem());
      if (!last && !stopping && options_.stop) stopping = options_.stop();
      if (!last && stopping && trainer_.steps_started() == step) return interrupt();
    }
    evaluate(abandon_);  // a resumed run begins with it
    return finish(RunStatus::finished);
  }

  static bool is_due(std::int64_t step, std::int64_t period) {
    return period > 0 && step % period == 0;
  }

  /// After this step the state is read: no other step may be in flight.
  bool is_boundary(std::int64_t step) const {
    return step == spec_.schedule.steps || step == options_.stem_step ||
           is_due(step, spec_.eval_every) || is_due(step, spec_.checkpoint_every);
  }

  void start_steps() {
    while (trainer_.steps_started() == trainer_.steps_done() ||
           (trainer_.steps_started() - trainer_.steps_done() <= ahead_ &&
            !is_boundary(trainer_.steps_started()))) {
      trainer_.start_step(abandon_);
    }
  }

  /// A step that ends soon after a stop is awaited; a long one (with a context of a million tokens)
  /// is abandoned. Any thread may ask.
  bool stopped_long_ago() {
    if (!options_.stop_in_step()) return false;
    const Clock::rep now = Clock::now().time_since_epoch().count();
    Clock::rep unset = 0;
    stopped_at_.compare_exchange_strong(unset, now);
    return Clock::duration(now - stopped_at_) > kStopPatience;
  }

  /// True when the run had ended and only its record was missing.
  bool restore() {
    make_folder(folder_.checkpoint().parent_path());
    if (options_.resume) {
      for (const fs::path& checkpoint : {folder_.checkpoint(), folder_.previous()}) {
        if (fs::exists(checkpoint) && restore(checkpoint)) return is_done(record_.status);
      }
    }
    metrics_.open(0);
    return false;
  }

  /// False when the checkpoint cannot be used; it is put aside then.
  bool restore(const fs::path& checkpoint) {
    try {
      check_owner(checkpoint);
      const auto notes =
          CheckpointNotes::from_metadata(trainer_.load(checkpoint), checkpoint, record_);
      const std::string id = record_.id;
      record_ = notes.record;
      record_.id = id;  // the checkpoint may be the stem of a shorter run
      stale_ = notes.stale;
      watch_.load(notes.watch);
      if (!metrics_.open(notes.metrics_bytes)) {
        note(fmt::format("{}: has lost lines that the checkpoint counts; the curve has a gap",
                         folder_.metrics().string()));
      }
      return true;
    } catch (const DataError& error) {
      const fs::path aside = put_aside(checkpoint);
      note(fmt::format("{}; put aside as {}", error.what(), aside.filename().string()));
      return false;
    }
  }

  void check_owner(const fs::path& checkpoint) const {
    const std::string owner = read_checkpoint_notes(checkpoint).record.id;
    if (owner.empty() || owner == record_.id) return;
    if (!options_.stem_from.empty() && owner == options_.stem_from) return;
    throw DataError(
        fmt::format("{}: belongs to run {}, not to {}", checkpoint.string(), owner, record_.id));
  }

  void note(const std::string& text) const {
    if (options_.on_note) options_.on_note(text);
  }

  /// The checkpoint, with the one it replaces kept next to it.
  void save_checkpoint() {
    std::error_code error;
    if (fs::exists(folder_.checkpoint(), error)) {
      fs::remove(folder_.previous(), error);
      fs::create_hard_link(folder_.checkpoint(), folder_.previous(), error);
    }
    save(folder_.checkpoint());
  }

  void save(const fs::path& path) {
    metrics_.sync();  // the checkpoint counts its bytes
    CheckpointNotes notes;
    notes.metrics_bytes = metrics_.bytes();
    notes.stale = stale_;
    notes.watch = watch_.save();
    notes.record = record_;
    notes.spec = to_toml(spec_);
    trainer_.save(path, notes.to_metadata());
  }

  /// False when patience has run out.
  bool evaluate(const std::function<bool()>& stop = {}) {
    const Evaluation evaluation = trainer_.evaluate(stop);
    record_.final_loss = evaluation.loss;
    record_.final_bits_per_byte = evaluation.bits_per_byte;
    record_.scores = evaluation.scores;
    stale_ = evaluation.loss < record_.best_loss ? 0 : stale_ + 1;
    record_.best_loss = std::min(record_.best_loss, evaluation.loss);
    metrics_.add(trainer_.steps_done(), evaluation);
    if (spec_.keep_best && stale_ == 0) save(folder_.best());
    if (options_.on_evaluation) options_.on_evaluation(trainer_.steps_done(), evaluation);
    return spec_.patience == 0 || stale_ < spec_.patience;
  }

  void report(const StepResult& result) const {
    if (!options_.on_step) return;
    const double steps_per_second = (trainer_.steps_done() - first_) / seconds_since(begin_);
    RunProgress progress;
    progress.step = trainer_.steps_done();
    progress.steps = spec_.schedule.steps;
    progress.last = result;
    progress.tokens_per_second = steps_per_second * spec_.tokens_per_step();
    progress.flops_per_second = steps_per_second * step_flops_;
    progress.seconds_left = (progress.steps - progress.step) / steps_per_second;
    options_.on_step(progress);
  }

  RunRecord finish(RunStatus outcome) {
    record_.status = outcome;
    if (outcome == RunStatus::diverged) {
      record_.final_loss = record_.final_bits_per_byte = NAN;
      record_.scores.reset();
    }
    save_checkpoint();
    return write_record();
  }

  RunRecord interrupt() {
    save_checkpoint();
    record_.status = RunStatus::interrupted;
    count_work();
    return record_;
  }

  /// The best checkpoint takes the place of the last, and stays: if the record is lost, the run
  /// continues from there and ends with the same bits.
  void return_to_best() const {
    if (!has_result(record_.status) || !fs::exists(folder_.best())) return;
    std::error_code error;
    fs::remove(folder_.previous(), error);
    fs::create_hard_link(folder_.best(), folder_.previous(), error);
    if (error) fs::copy_file(folder_.best(), folder_.previous());
    fs::rename(folder_.previous(), folder_.checkpoint());
  }

  RunRecord write_record() {
    count_work();
    if (spec_.keep_best) return_to_best();
    nlohmann::ordered_json document = to_json(record_);
    document["made_by"] = provenance_of(spec_);
    write_file_atomically(folder_.record(), json_file_text(std::move(document)));
    std::error_code ignored;  // no run continues from here
    fs::remove(folder_.previous(), ignored);
    return record_;
  }

  void count_work() {
    record_.steps = trainer_.steps_done();
    record_.tokens = record_.steps * spec_.tokens_per_step();
    record_.flops = step_flops_ * record_.steps;
    record_.seconds = seconds_since(begin_);
    record_.timed_steps = record_.steps - first_;
    record_.memory_bytes = trainer_.executor().bytes();
    record_.metrics_bytes = metrics_.bytes();
  }

  RunSpec spec_;
  const RunOptions& options_;
  RunFolder folder_;
  Trainer trainer_;
  MetricsWriter metrics_;
  RunRecord record_;
  DivergenceWatch watch_;
  std::int64_t stale_ = 0, first_ = 0, ahead_ = 0;
  std::function<bool()> abandon_;           // empty where a step is always finished
  std::atomic<Clock::rep> stopped_at_ = 0;  // when that was first heard; 0: never
  double step_flops_;
  Clock::time_point begin_ = Clock::now();
};

/// Requires that the folder is new or holds this same run.
void check_folder(const RunFolder& folder, const RunSpec& spec, const data::TokenSet* tokens,
                  bool resume) {
  const std::string name = folder.path().string();
  if (!fs::exists(folder.spec())) {
    make_folder(folder.path());
    write_file_atomically(folder.spec(), toml_file_text(to_toml(spec)));
    return;
  }
  const RunSpec held = resolved_for(read_run_spec(folder.spec(), {}), tokens);
  if (id_of(held, tokens) != id_of(spec, tokens)) {
    throw ConfigError(fmt::format("{} holds another run (its {} differs); give another --out", name,
                                  folder.spec().filename().string()));
  }
  if (!resume && fs::exists(folder.metrics())) {
    throw ConfigError(fmt::format("{} holds an unfinished run; --resume continues it", name));
  }
}

/// The record of the run, if it has ended. One that is damaged is put aside by a resume, which ends
/// the run again from its checkpoint.
std::optional<RunRecord> read_own_record(const RunFolder& folder, const std::string& id,
                                         const RunOptions& options) {
  if (!fs::exists(folder.record())) return {};
  try {
    RunRecord done = read_run_record(folder.record());
    if (done.id == id) return done;
    throw ConfigError(fmt::format("{} holds the finished run {}; give another --out",
                                  options.directory.string(), done.id));
  } catch (const DataError& error) {
    if (!options.resume) throw;
    const fs::path aside = put_aside(folder.record());
    if (options.on_note) {
      options.on_note(fmt::format("{}; put aside as {}", error.what(), aside.filename().string()));
    }
    return {};
  }
}

/// One process trains a run at a time; the lock dies with it.
FileLock claim_run(const RunFolder& folder, const std::string& id) {
  make_folder(folder.path());
  auto claim = FileLock::acquire(folder.claim(), "run " + id, 0);
  if (claim) return std::move(*claim);
  const auto holder = FileLock::holder(folder.claim()).value_or(LockHolder{});
  throw ConfigError(
      fmt::format("{}: process {} on {} is training this run; wait for it, or give "
                  "another --out",
                  folder.path().string(), holder.pid, holder.host));
}

RunRecord train_in_folder(const RunSpec& spec, const data::TokenSet* tokens,
                          const RunOptions& options) {
  const RunSpec resolved = resolved_for(spec, tokens);
  const RunFolder folder(options.directory);
  const std::string id = id_of(resolved, tokens);
  if (const auto done = read_own_record(folder, id, options)) return *done;
  std::optional<FileLock> claim;
  if (!options.claimed) claim.emplace(claim_run(folder, id));
  // No other process writes here: what is half-written was left by a kill.
  remove_leftovers({folder.spec(), folder.metrics(), folder.record(), folder.checkpoint(),
                    folder.best(), folder.stem()});
  check_folder(folder, resolved, tokens, options.resume);
  return Run(resolved, tokens, options).go();
}

}  // namespace

RunRecord run_training(const RunSpec& spec, const data::TokenSet& tokens,
                       const RunOptions& options) {
  if (spec.has_task()) throw InternalError("tokens for a run that has a task");
  return train_in_folder(spec, &tokens, options);
}

RunRecord run_training(const RunSpec& spec, const RunOptions& options) {
  if (!spec.has_task()) throw InternalError("a run without tokens and without a task");
  return train_in_folder(spec, nullptr, options);
}

}  // namespace fathom::train
