#include "cli/slurm_options.h"

#include "cli/command_line.h"

namespace fathom {

void ExecutorChoice::add_options(CommandTree& tree, Command& command, bool shown) {
  const auto add = [&](const char* name, auto& value, const char* description) {
    Option* option = command.add_option(name, value, description);
    return shown ? option : option->hide();
  };
  tree.restrict(
      add("--executor", executor, "Where runs are trained (default local)")->type_name("NAME"),
      {"local", "slurm"});
  add("--partition", slurm.partition, "Slurm: partition")->type_name("NAME");
  add("--runs-per-task", slurm.runs_per_task,
      "Slurm: runs per array task (default: about ten minutes of work)")
      ->check(Range{1, 100000})
      ->type_name("N");
  add("--sbatch-option", slurm.sbatch_options,
      "Slurm: passed to sbatch unchanged, e.g. --sbatch-option=--mem=4G")
      ->type_name("OPTION");
  add("--stall-seconds", slurm.stall_seconds,
      "Slurm: cancel a task that makes no progress for this long (default 120)")
      ->check(Range{5.0, 86400.0})
      ->type_name("S");
}

}  // namespace fathom
