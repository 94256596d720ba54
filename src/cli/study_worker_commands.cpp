// The hidden commands behind `study run`: one run (a worker process) and one task of a Slurm job.
#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>

#include "cli/stop_signals.h"
#include "cli/study_commands.h"
#include "core/error.h"
#include "study/local_executor.h"
#include "study/slurm_queue.h"
#include "study/subprocess.h"
#include "study/worker.h"

namespace fathom {
namespace {

struct WorkerArguments {
  std::string directory, id, from;
  std::int64_t stem = 0;
};

void run_one(const WorkerArguments& arguments) {
  const StopSignals signals;
  study::WorkerOptions options;
  options.directory = arguments.directory;
  options.id = arguments.id;
  options.stem_step = arguments.stem;
  options.stem_from = arguments.from;
  options.stop = [] { return StopSignals::came(); };
  study::run_worker(options);
}

struct TaskArguments {
  std::string directory, file;
};

/// One task of an array job: the runs of its line, one after another. Before its time is up Slurm
/// sends SIGUSR1: it checkpoints and asks to be queued again.
void run_task(Session& session, const TaskArguments& arguments) {
  const StopSignals signals;
  const char* index = std::getenv("SLURM_ARRAY_TASK_ID");
  const char* job = std::getenv("SLURM_ARRAY_JOB_ID");
  if (index == nullptr || job == nullptr) throw ConfigError("study task runs under Slurm only");
  const study::Study study = study::open_study(arguments.directory);
  std::vector<const study::PlannedRun*> runs;
  for (const std::string& id :
       study::read_task(arguments.file, std::strtoull(index, nullptr, 10))) {
    if (const study::PlannedRun* run = study.find(id)) runs.push_back(run);
  }
  study::ExecutorEvents events;
  events.stop = [] { return StopSignals::came(); };
  events.note = [&](const std::string& text) { session.err << text << "\n" << std::flush; };
  events.ended = [&](const study::PlannedRun& run, const study::RunState& state) {
    session.err << fmt::format("{} {}: {} {}\n", run.id, run.label(), to_string(state.status),
                               state.reason)
                << std::flush;
  };
  const auto result = study::run_local(study, runs, {1, study::own_program()}, events);
  if (result.stopped && StopSignals::last() == SIGUSR1) {
    study::run_program({"scontrol", "requeue", fmt::format("{}_{}", job, index)});
  }
  if (result.stopped) throw StoppedError("stopped with checkpoints");
}

}  // namespace

void add_study_worker(CommandTree& tree, Command& parent) {
  auto arguments = std::make_shared<WorkerArguments>();
  Command& command = tree.add(parent, "worker", {"One run of a study (used by study run)", "", {}},
                              [arguments](Session&) { run_one(*arguments); });
  command.hide();
  command.add_option("DIR", arguments->directory, "The study's directory")->required();
  command.add_option("ID", arguments->id, "The run")->required();
  command.add_option("--stem", arguments->stem, "Keep a checkpoint after this step");
  command.add_option("--from", arguments->from, "Start from the stem of this run");
}

void add_study_task(CommandTree& tree, Command& parent) {
  auto arguments = std::make_shared<TaskArguments>();
  Command& command =
      tree.add(parent, "task", {"One task of a Slurm array job (used by study run)", "", {}},
               [arguments](Session& session) { run_task(session, *arguments); });
  command.hide();
  command.add_option("DIR", arguments->directory, "The study's directory")->required();
  command.add_option("FILE", arguments->file, "Runs of every task, a line each")->required();
}

}  // namespace fathom
