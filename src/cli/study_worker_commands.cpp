// The hidden commands behind `study run` and `serve`: one run (a worker process), one task of a
// Slurm job, and the findings of a study that is being viewed.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include "cli/stop_signals.h"
#include "cli/study_commands.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/text.h"
#include "report/report_document.h"
#include "study/local_executor.h"
#include "study/slurm_task.h"
#include "study/worker.h"
#include "study/worker_process.h"

namespace fathom {
namespace {

struct WorkerArguments {
  std::string directory, id, from;
  std::int64_t stem = 0;
};

void run_one(Session& session, const WorkerArguments& arguments) {
  const StopSignals signals;
  study::WorkerOptions options;
  options.directory = arguments.directory;
  options.id = arguments.id;
  options.stem_step = arguments.stem;
  options.stem_from = arguments.from;
  options.stop = [] { return StopSignals::came(); };
  options.note = [&](const std::string& text) {
    session.err << study::kWorkerNote << text << "\n" << std::flush;
  };
  study::run_worker(options);
}

struct TaskArguments {
  std::string directory, file;
};

void run_task(Session& session, const TaskArguments& arguments) {
  const StopSignals signals;
  study::ExecutorEvents events;
  events.stop = [] { return StopSignals::came(); };
  events.note = [&](const std::string& text) { session.err << text << "\n" << std::flush; };
  events.ended = [&](const study::PlannedRun& run, const study::RunState& state) {
    session.err << fmt::format("{} {}: {} {}\n", run.id, run.label(), to_string(state.status),
                               printable(state.reason, 500))
                << std::flush;
  };
  study::run_slurm_task({.directory = arguments.directory,
                         .file = arguments.file,
                         .program = study::own_program(),
                         .out_of_time = [] { return StopSignals::last() == SIGUSR1; }},
                        events);
}

struct FindingsArguments {
  std::string directory, file;
};

void find(const FindingsArguments& arguments) {
  constexpr int kLowestPriority = 19;
  setpriority(PRIO_PROCESS, 0, kLowestPriority);  // lowering priority is always permitted
  write_file_atomically(arguments.file, json_text(report::make_findings(arguments.directory), -1));
}

}  // namespace

void add_study_worker(CommandTree& tree, Command& parent) {
  auto arguments = std::make_shared<WorkerArguments>();
  Command& command = tree.add(parent, "worker", {"One run of a study (used by study run)", "", {}},
                              [arguments](Session& session) { run_one(session, *arguments); });
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

void add_study_findings(CommandTree& tree, Command& parent) {
  auto arguments = std::make_shared<FindingsArguments>();
  Command& command =
      tree.add(parent, "findings", {"What a study's runs say, as JSON (used by serve)", "", {}},
               [arguments](Session&) { find(*arguments); });
  command.hide();
  command.add_option("DIR", arguments->directory, "The study's directory")->required();
  command.add_option("FILE", arguments->file, "The file to write")->required();
}

}  // namespace fathom
