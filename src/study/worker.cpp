#include "study/worker.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/files.h"
#include "core/safetensors.h"
#include "data/token_set.h"
#include "study/file_lock.h"
#include "study/run_state.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

constexpr double kClaimPatienceSeconds = 60;

/// The first steps of a longer run are those of a shorter one: take over its stem and the metrics
/// that belong to it. Metrics first: without a checkpoint they count for nothing.
void start_from_stem(const fs::path& folder, const fs::path& shorter) {
  const fs::path stem = train::stem_path(shorter);
  std::error_code error;
  if (fs::exists(train::checkpoint_path(folder)) || !fs::exists(stem, error)) return;
  std::uint64_t kept = 0;
  {
    const SafetensorsFile file(stem);
    const auto note = file.metadata().find("metrics_bytes");
    if (note == file.metadata().end()) return;
    kept = std::strtoull(note->second.c_str(), nullptr, 10);
  }
  const std::string metrics = read_text_file(shorter / "metrics.jsonl");
  if (metrics.size() < kept) return;
  write_file_atomically(folder / "metrics.jsonl", std::string_view(metrics).substr(0, kept));
  const fs::path target = train::checkpoint_path(folder);
  fs::create_directories(target.parent_path());
  const fs::path aside = target.string() + ".stem.tmp";
  fs::copy_file(stem, aside, fs::copy_options::overwrite_existing);
  fs::rename(aside, target);
}

train::RunRecord train_claimed(const WorkerOptions& options, const fs::path& folder) {
  const RunState state = read_run_state(folder);
  if (state.broken_record) fs::rename(folder / "record.json", folder / "record.json.broken");
  const data::TokenSet tokens(options.directory / "tokens");
  train::RunSpec spec = train::read_run_spec(folder / "spec.toml", {});
  spec.tokens = (options.directory / "tokens").string();
  const std::string id = run_id(resolve(spec, tokens), tokens.hash());
  if (id != options.id) {
    throw DataError(
        fmt::format("{}: its spec.toml is of run {}; delete this folder", folder.string(), id));
  }
  if (!options.stem_from.empty()) {
    start_from_stem(folder, options.directory / "runs" / options.stem_from);
  }
  train::RunOptions run;
  run.directory = folder;
  run.resume = true;
  run.stem_step = options.stem_step;
  run.stop = options.stop;
  train::RunRecord record = train::run_training(spec, tokens, run);
  if (record.outcome != train::Outcome::interrupted && !options.stem_from.empty()) {
    std::error_code ignored;  // nobody needs the stem any more
    fs::remove(train::stem_path(options.directory / "runs" / options.stem_from), ignored);
  }
  return record;
}

}  // namespace

train::RunRecord run_worker(const WorkerOptions& options) {
  const fs::path folder = options.directory / "runs" / options.id;
  if (!fs::exists(folder / "spec.toml")) {
    throw DataError(fmt::format("{}: no run to work on (spec.toml is missing)", folder.string()));
  }
  const auto claim =
      FileLock::acquire(claim_path(folder), "run " + options.id, kClaimPatienceSeconds);
  if (!claim) throw StoppedError(fmt::format("run {}: another worker is at it", options.id));
  try {
    train::RunRecord record = train_claimed(options, folder);
    if (record.outcome == train::Outcome::interrupted) {
      throw StoppedError(fmt::format("run {} stopped after step {}", options.id, record.steps));
    }
    clear_failure(folder);
    return record;
  } catch (const StoppedError&) {
    throw;
  } catch (const std::exception& error) {
    try {
      write_failure(folder, error.what());
    } catch (const Error&) {  // a full disk: the reason reaches the parent through its log
    }
    throw;
  }
}

}  // namespace fathom::study
