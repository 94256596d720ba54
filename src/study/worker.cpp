#include "study/worker.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/files.h"
#include "data/token_set.h"
#include "study/file_lock.h"
#include "study/run_state.h"
#include "train/checkpoint_notes.h"
#include "train/run.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

constexpr double kClaimPatienceSeconds = 60;

/// The first steps of a longer run are those of a shorter one: take over its stem and the metrics
/// that belong to it. Metrics first: without a checkpoint they count for nothing.
void start_from_stem(const StudyRunFolder& run, const StudyRunFolder& shorter) {
  std::error_code error;
  if (fs::exists(run.checkpoint()) || !fs::exists(shorter.stem(), error)) return;
  const std::uint64_t kept = train::read_checkpoint_notes(shorter.stem()).metrics_bytes;
  const std::string metrics = read_text_file(shorter.metrics());
  if (metrics.size() < kept) return;
  write_file_atomically(run.metrics(), std::string_view(metrics).substr(0, kept));
  fs::create_directories(run.checkpoint().parent_path());
  const fs::path aside = run.checkpoint().string() + ".stem.tmp";
  fs::copy_file(shorter.stem(), aside, fs::copy_options::overwrite_existing);
  fs::rename(aside, run.checkpoint());
}

train::RunRecord train_claimed(const WorkerOptions& options, const StudyRunFolder& run) {
  const StudyFolder study(options.directory);
  if (read_run_state(run).broken_record) fs::rename(run.record(), run.broken_record());
  const data::TokenSet tokens(study.tokens());
  train::RunSpec spec = train::read_run_spec(run.spec(), {});
  spec.tokens = study.tokens().string();
  const std::string id = run_id(resolve(spec, tokens), tokens.hash());
  if (id != options.id) {
    throw DataError(
        fmt::format("{}: its spec is of run {}; delete this folder", run.path().string(), id));
  }
  const bool from_stem = !options.stem_from.empty();
  if (from_stem) start_from_stem(run, study.run(options.stem_from));
  train::RunOptions training;
  training.directory = run.path();
  training.resume = true;
  training.stem_step = options.stem_step;
  training.stop = options.stop;
  train::RunRecord record = train::run_training(spec, tokens, training);
  if (is_done(record.status) && from_stem) {
    std::error_code ignored;  // nobody needs the stem any more
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
