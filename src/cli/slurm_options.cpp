#include "cli/slurm_options.h"

#include "cli/command_line.h"

namespace fathom {

void ExecutorChoice::add_options(CommandTree& tree, Command& command) {
  tree.restrict(command.add_option("--executor", executor, "Who trains runs (default local)")
                    ->type_name("NAME"),
                {"local", "slurm"});
  command.add_option("--partition", slurm.partition, "Slurm: partition")->type_name("NAME");
  command
      .add_option("--runs-per-task", slurm.runs_per_task,
                  "Slurm: runs of one array task (default: about ten minutes of work)")
      ->check(Range{1, 100000})
      ->type_name("N");
  command
      .add_option("--sbatch-option", slurm.sbatch_options,
                  "Slurm: handed to sbatch as it is, e.g. --sbatch-option=--mem=4G")
      ->type_name("OPTION");
  command
      .add_option("--stall-seconds", slurm.stall_seconds,
                  "Slurm: cancel a task that does nothing for so long (default 120)")
      ->check(Range{5.0, 86400.0})
      ->type_name("S");
}

}  // namespace fathom
