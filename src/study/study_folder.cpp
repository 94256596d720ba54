#include "study/study_folder.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/files.h"
#include "data/token_set.h"
#include "engine/device.h"
#include "study/token_store.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

TokenFacts facts_of(const fs::path& folder) {
  const data::TokenSet tokens(folder);
  return {tokens.hash(), static_cast<std::int64_t>(tokens.tokenizer().vocabulary())};
}

fs::path spec_path(const fs::path& directory) {
  return directory / "study.toml";
}

void plan(Study& study) {
  std::optional<TokenFacts> facts;
  if (fs::exists(study.tokens() / "corpus.json")) facts = facts_of(study.tokens());
  study.has_tokens = facts.has_value();
  study.runs = plan_runs(study.spec, facts);
  for (PlannedRun& run : study.runs) run.spec.tokens = study.tokens().string();
}

void require_device(const std::string& device) {
  if (device == "cuda") engine::cuda_module();  // DeviceError when there is no GPU
}

void make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    throw DataError(
        fmt::format("{}: cannot make this folder: {}", directory.string(), error.message()));
  }
}

}  // namespace

const PlannedRun* Study::find(const std::string& id) const {
  for (const PlannedRun& run : runs) {
    if (run.id == id) return &run;
  }
  return nullptr;
}

Study open_study(const fs::path& directory) {
  if (!fs::exists(spec_path(directory))) {
    throw DataError(
        fmt::format("{}: no study here (study.toml is missing); begin one with: fathom "
                    "study run SPEC {}",
                    directory.string(), directory.string()));
  }
  Study study;
  study.directory = fs::absolute(directory).lexically_normal();
  study.spec = read_study_spec(spec_path(directory));
  plan(study);
  return study;
}

fs::path study_lock_path(const fs::path& directory) {
  return directory / "lock";
}

FileLock lock_study(const fs::path& directory, const std::string& what) {
  make_directory(directory);
  constexpr double kPatienceSeconds = 0.5;  // `status` looks at the lock for a moment
  auto lock = FileLock::acquire(study_lock_path(directory), what, kPatienceSeconds);
  if (lock) return std::move(*lock);
  const auto holder = FileLock::holder(study_lock_path(directory)).value_or(LockHolder{});
  throw ConfigError(fmt::format(
      "{}: another command is at this study (process {} on {}); wait for it, or: fathom study "
      "stop {}",
      directory.string(), holder.pid, holder.host, directory.string()));
}

Study begin_study(const fs::path& directory, const std::optional<StudySpec>& given,
                  const data::PrepareProgress& progress) {
  Study study;
  study.directory = fs::absolute(directory).lexically_normal();
  study.spec = given ? *given : open_study(directory).spec;
  require_device(study.spec.device);
  ensure_tokens(study.directory, study.spec.corpus, progress);
  if (given) {
    const bool same =
        fs::exists(spec_path(directory)) && read_text_file(spec_path(directory)) == study.spec.text;
    if (!same) write_file_atomically(spec_path(study.directory), study.spec.text);
  }
  plan(study);
  make_directory(study.directory / "runs");
  return study;
}

void prepare_run_folder(const Study& study, const PlannedRun& run) {
  const fs::path folder = study.run_folder(run.id);
  make_directory(folder);
  if (!fs::exists(folder / "spec.toml")) {
    write_file_atomically(folder / "spec.toml", to_toml(run.spec));
  }
}

}  // namespace fathom::study
