#include "study/worker.h"

#include <fmt/format.h>

#include <optional>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "core/folders.h"
#include "core/mapped_file.h"
#include "data/token_set.h"
#include "study/run_state.h"
#include "train/checkpoint_notes.h"
#include "train/run.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

constexpr double kClaimPatienceSeconds = 60;

/// The first steps of a longer run are those of a shorter one: take over its stem and the metrics
/// that belong to it. Metrics first: without a checkpoint they are ignored.
void copy_stem(const StudyRunFolder& run, const StudyRunFolder& shorter) {
  const std::uint64_t kept = train::read_checkpoint_notes(shorter.stem()).metrics_bytes;
  const std::string metrics = read_text_file(shorter.metrics());
  if (metrics.size() < kept) return;
  write_file_atomically(run.metrics(), std::string_view(metrics).substr(0, kept));
  make_folder(run.checkpoint().parent_path());
  const MappedFile stem(shorter.stem());
  AtomicFile copy(run.checkpoint());
  copy.write(stem.bytes().data(), stem.bytes().size());
  copy.commit();
}

void start_from_stem(const WorkerOptions& options, const StudyRunFolder& run,
                     const StudyRunFolder& shorter) {
  std::error_code error;
  if (fs::exists(run.checkpoint(), error) || fs::exists(run.previous(), error)) return;
  if (!fs::exists(shorter.stem(), error)) return;
  try {
    copy_stem(run, shorter);
  } catch (const DataError& damage) {
    if (options.note) options.note(fmt::format("{}; the run starts over", damage.what()));
  }
}

train::RunRecord train_claimed(const WorkerOptions& options, const StudyRunFolder& run) {
  const StudyFolder study(options.directory);
  remove_leftovers({run.failure()});
  if (!read_run_state(run).damage.empty()) put_aside(run.record());
  train::RunSpec spec = train::read_run_spec(run.spec(), {});
  std::optional<data::TokenSet> tokens;  // a run on a task reads none
  if (!spec.has_task()) {
    tokens.emplace(study.tokens());
    spec.tokens = study.tokens().string();
    spec = resolve(spec, *tokens);
  }
  const std::string id = run_id(spec, tokens ? tokens->hash() : Hash128{});
  if (id != options.id) {
    throw DataError(
        fmt::format("{}: its spec belongs to run {}; delete this folder", run.path().string(), id));
  }
  const bool from_stem = !options.stem_from.empty();
  if (from_stem) start_from_stem(options, run, study.run(options.stem_from));
  train::RunOptions training;
  training.directory = run.path();
  training.resume = true;
  training.claimed = true;
  training.stem_step = options.stem_step;
  training.stem_from = options.stem_from;
  training.on_note = options.note;
  training.stop = training.stop_in_step = options.stop;
  train::RunRecord record =
      tokens ? train::run_training(spec, *tokens, training) : train::run_training(spec, training);
  if (is_done(record.status) && from_stem) {
    std::error_code ignored;  // the stem is no longer needed
    fs::remove(study.run(options.stem_from).stem(), ignored);
  }
  return record;
}

}  // namespace

train::RunRecord run_worker(const WorkerOptions& options) {
  const StudyRunFolder run = StudyFolder(options.directory).run(options.id);
  if (!fs::exists(run.spec())) {
    throw DataError(fmt::format("{}: no run to work on ({} is missing)", run.path().string(),
                                run.spec().filename().string()));
  }
  const auto claim = FileLock::acquire(run.claim(), "run " + options.id, kClaimPatienceSeconds);
  if (!claim) throw StoppedError(fmt::format("run {}: another worker is training it", options.id));
  try {
    train::RunRecord record = train_claimed(options, run);
    if (!is_done(record.status)) {
      throw StoppedError(fmt::format("run {} stopped after step {}", options.id, record.steps));
    }
    clear_failure(run);
    return record;
  } catch (const StoppedError&) {
    throw;
  } catch (const std::exception& error) {
    try {
      write_failure(run, error.what());
    } catch (const Error&) {  // a full disk: the reason reaches the parent through its log
    }
    throw;
  }
}

}  // namespace fathom::study
