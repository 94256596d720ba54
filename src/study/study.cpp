#include "study/study.h"

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/folders.h"
#include "core/toml_file.h"
#include "data/token_set.h"
#include "engine/cuda/module.h"
#include "engine/device.h"
#include "study/design_log.h"
#include "study/token_store.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

StudyFolder absolute_folder(const fs::path& directory) {
  return StudyFolder(fs::absolute(directory).lexically_normal());
}

}  // namespace

void plan_again(Study& study) {
  const std::optional<TokenFacts> facts = read_token_facts(study.folder);
  const auto log = read_design_log(study.folder);
  study.has_tokens = facts.has_value();
  study.runs =
      plan_runs(study.spec, log ? log->trajectories() : grid_trajectories(study.spec), facts);
  for (PlannedRun& run : study.runs) run.spec.tokens = study.folder.tokens().string();
}

const PlannedRun* Study::find(const std::string& id) const {
  for (const PlannedRun& run : runs) {
    if (run.id == id) return &run;
  }
  return nullptr;
}

std::vector<const PlannedRun*> Study::all_runs() const {
  std::vector<const PlannedRun*> all;
  for (const PlannedRun& run : runs) all.push_back(&run);
  return all;
}

std::optional<TokenFacts> read_token_facts(const StudyFolder& folder) {
  if (!data::is_token_set(folder.tokens())) return {};
  const data::TokenSet tokens(folder.tokens());
  return TokenFacts{tokens.hash(), as_signed(tokens.tokenizer().vocabulary()),
                    as_signed(tokens.file(data::Split::train).size())};
}

Study open_study(const fs::path& directory) {
  const StudyFolder folder = absolute_folder(directory);
  if (!fs::exists(folder.spec())) {
    throw DataError(
        fmt::format("{}: no study here ({} is missing); start one with: fathom study run SPEC {}",
                    directory.string(), StudyFolder::kSpec, directory.string()));
  }
  Study study{.folder = folder, .spec = read_study_spec(folder.spec()), .runs = {}};
  plan_again(study);
  return study;
}

Study open_run_folders(const fs::path& directory) {
  Study study{.folder = absolute_folder(directory), .spec = {}, .runs = {}};
  const std::optional<TokenFacts> facts = read_token_facts(study.folder);
  study.has_tokens = true;
  for (const fs::directory_entry& entry : fs::directory_iterator(study.folder.runs())) {
    const StudyRunFolder folder(entry.path());
    if (!fs::exists(folder.spec())) continue;
    train::RunSpec spec = train::read_run_spec(folder.spec(), {});
    const Hash128 tokens = spec.has_task() || !facts ? Hash128{} : facts->hash;
    study.runs.push_back(plan_run(std::move(spec), tokens));
    study.runs.back().id = entry.path().filename().string();
  }
  return study;
}

FileLock lock_study(const fs::path& directory, const std::string& what) {
  make_folder(directory);
  const fs::path path = StudyFolder(directory).lock();
  constexpr double kPatienceSeconds = 0.5;  // `status` looks at the lock for a moment
  auto lock = FileLock::acquire(path, what, kPatienceSeconds);
  if (lock) return std::move(*lock);
  const auto holder = FileLock::holder(path).value_or(LockHolder{});
  throw ConfigError(
      fmt::format("{}: another command is working on this study (process {} on {}); wait for it, "
                  "or: fathom study stop {}",
                  directory.string(), holder.pid, holder.host, directory.string()));
}

Study begin_study(const fs::path& directory, const std::optional<StudySpec>& given,
                  const data::PrepareProgress& progress) {
  const StudyFolder written(directory);
  remove_leftovers({written.spec(), written.corpus(), written.points(), written.law(),
                    written.design(), written.report_document()});
  Study study{.folder = absolute_folder(directory),
              .spec = given ? *given : open_study(directory).spec,
              .runs = {}};
  if (study.spec.device == engine::DeviceKind::cuda) engine::cuda_module();  // DeviceError: no GPU
  require_same_design(study.folder, study.spec);
  ensure_tokens(study.folder, study.spec.corpus, progress);
  const fs::path spec = study.folder.spec();
  const std::string text = toml_file_text(study.spec.text);
  if (given && !(fs::exists(spec) && read_text_file(spec) == text)) {
    write_file_atomically(spec, text);
  }
  plan_again(study);
  make_folder(study.folder.runs());
  return study;
}

void stop_study(const fs::path& directory, double wait_seconds) {
  const fs::path lock = StudyFolder(directory).lock();
  const auto holder = FileLock::holder(lock);
  if (!holder) {
    throw ConfigError(fmt::format("{}: no command is working on this study", directory.string()));
  }
  if (holder->host != host_name() || holder->pid <= 1) {
    throw ConfigError(fmt::format("{}: the study runs on {}, process {}; stop it there",
                                  directory.string(), holder->host, holder->pid));
  }
  kill(holder->pid, SIGTERM);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_seconds);
  while (FileLock::holder(lock)) {
    if (std::chrono::steady_clock::now() > end) {
      throw StoppedError(fmt::format(
          "process {} was asked to stop and is still writing its checkpoints", holder->pid));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void prepare_run_folder(const Study& study, const PlannedRun& run) {
  const StudyRunFolder folder = study.folder.run(run.id);
  make_folder(folder.path());
  if (!fs::exists(folder.spec()))
    write_file_atomically(folder.spec(), toml_file_text(to_toml(run.spec)));
}

}  // namespace fathom::study
