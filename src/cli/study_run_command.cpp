// fathom study run and stop: the runs of a study, to their records.
#include <fmt/format.h>

#include <filesystem>

#include "cli/slurm_options.h"
#include "cli/stop_signals.h"
#include "cli/study_commands.h"
#include "cli/study_end.h"
#include "cli/study_progress.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "study/cost.h"
#include "study/local_executor.h"
#include "study/rounds.h"
#include "study/slurm_executor.h"
#include "terminal/progress.h"

namespace fathom {

namespace fs = std::filesystem;

namespace {

struct StudyRunOptions {
  std::vector<std::string> places;  // [SPEC] DIR
  StudySource source;
  ExecutorChoice choice;
  int jobs = 0;
  bool json = false;
};

/// The spec that the command line names, or none: then the directory's own.
std::optional<study::StudySpec> given_spec(const StudyRunOptions& options) {
  const bool file = options.places.size() == 2;
  if (file || !options.source.preset.empty()) {
    return options.source.read(file ? options.places.front() : "");
  }
  if (!options.source.all_settings().empty()) return options.source.read(options.places.back());
  return {};
}

study::Study begin(Session& session, const StudyRunOptions& options, const fs::path& directory) {
  const auto spec = given_spec(options);
  ProgressLine line(session.err, is_live_error_stream(session.err));
  std::string shown;
  const auto progress = [&](const std::string& stage, double fraction, std::uint64_t bytes) {
    if (stage != shown) line.clear();
    shown = stage;
    line.update(fmt::format("tokens: {}  {}", stage, format_bytes(as_double(bytes))), fraction);
  };
  return study::begin_study(directory, spec, progress);
}

int jobs_of(const study::StudySpec& spec, const StudyRunOptions& options) {
  return options.jobs > 0 ? options.jobs : study::default_jobs(spec);
}

study::ExecutorResult run_planned(const study::Study& study, const StudyRunOptions& options,
                                  const study::ExecutorEvents& events) {
  if (options.choice.is_slurm()) {
    study::SlurmOptions slurm = options.choice.slurm;
    slurm.max_tasks = options.jobs;
    slurm.program = study::own_program();
    return study::run_slurm(study, study.all_runs(), slurm, events);
  }
  return study::run_local(study, study.all_runs(),
                          {jobs_of(study.spec, options), study::own_program()}, events);
}

/// The whole study: its grid, or its rounds until they end.
study::RoundsResult run_all(Session& session, study::Study& study, const StudyRunOptions& options) {
  StudyProgress progress(session);
  study::ExecutorEvents events = progress.events();
  events.stop = [] { return StopSignals::came(); };
  const auto execute = [&](const study::Study& planned) {
    return run_planned(planned, options, events);
  };
  study::RoundsResult result;
  if (study.spec.design) {
    result = study::run_rounds(study, jobs_of(study.spec, options), execute, events.note);
  } else {
    result.runs = execute(study);
  }
  progress.finish();
  return result;
}

/// Removes a new directory again when no study began in it: no text, or too little.
class UnbegunStudy {
 public:
  explicit UnbegunStudy(const fs::path& directory)
      : folder_(directory), is_new_(!fs::exists(directory)) {}
  ~UnbegunStudy() {
    if (!is_new_ || folder_.holds_study()) return;
    std::error_code ignored;
    fs::remove(folder_.lock(), ignored);
    fs::remove(folder_.path(), ignored);  // spares a folder that holds anything else
  }
  UnbegunStudy(const UnbegunStudy&) = delete;
  UnbegunStudy& operator=(const UnbegunStudy&) = delete;

 private:
  study::StudyFolder folder_;
  bool is_new_;
};

void run_study(Session& session, const StudyRunOptions& options) {
  const fs::path directory = options.places.back();
  // A wrong spec must not leave a directory behind.
  if (options.places.size() == 1 && options.source.preset.empty()) study::open_study(directory);
  given_spec(options);
  const UnbegunStudy unbegun(directory);
  const FileLock lock = study::lock_study(directory, "study run");
  const StopSignals signals;
  study::Study study = begin(session, options, directory);
  const std::string repeated =
      longest_repetition(study.runs, study::read_token_facts(study.folder));
  if (!repeated.empty()) session.err << "fathom: " << repeated << "\n";
  const study::RoundsResult result = run_all(session, study, options);
  print_study_end(session, study, result, options.json);
  if (result.runs.stopped) {
    throw StoppedError(fmt::format("stopped; 'fathom study run {}' continues", directory.string()));
  }
  if (result.runs.failed > 0) {
    throw DataError(fmt::format("{} of {} runs failed; 'fathom study status {}' says why",
                                result.runs.failed, study.runs.size(), directory.string()));
  }
}

struct StopOptions {
  std::string directory;
  double wait = 60;
};

void stop(Session& session, const StopOptions& options) {
  study::stop_study(options.directory, options.wait);
  session.out << fmt::format("stopped; 'fathom study run {}' continues\n", options.directory);
}

}  // namespace

void add_study_run(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<StudyRunOptions>();
  Command& command = tree.add(
      parent, "run",
      {"Train the unfinished runs of a study",
       "Prepares the tokens once, then trains every run of the spec that has no record yet, one "
       "model per core. With a [design] it continues in rounds, each chosen from the runs before "
       "it. After a stop (Ctrl-C, study stop) or a kill at any moment, the same command continues, "
       "and the result is the same bit for bit. Diverged runs are results; failed ones are retried "
       "by the next call.",
       {{"study run --preset quick my-study", "the quick study"},
        {"study run mine.toml my-study", "a spec of your own"},
        {"study run my-study", "go on"},
        {"study run mine.toml my-study --jobs 1", "one model at a time"},
        {"study run my-study --executor slurm --partition gpu", "as array jobs on a cluster"}}},
      [options](Session& session) { run_study(session, *options); });
  command
      .add_option("PLACES", options->places,
                  "The study's directory, optionally preceded by your own spec")
      ->type_name("[SPEC] DIR")
      ->required()
      ->expected(1, 2);
  options->source.add_options(tree, command);
  command
      .add_option("--jobs", options->jobs,
                  "Models at once (default: one per core); tasks at once under Slurm")
      ->check(Range{1, 1024});
  options->choice.add_options(tree, command);
  command.add_flag("--json", options->json, "Print JSON at the end");
}

void add_study_stop(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<StopOptions>();
  Command& command = tree.add(
      parent, "stop",
      {"Ask the running command to checkpoint and exit",
       "Sends a termination signal to the process that runs the study on this machine and waits "
       "until it has written its checkpoints.",
       {{"study stop my-study", "the study can be continued later"}}},
      [options](Session& session) { stop(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  command.add_option("--wait", options->wait, "Seconds to wait for it to exit (default 60)")
      ->check(Range{0.0, 86400.0});
}

}  // namespace fathom
