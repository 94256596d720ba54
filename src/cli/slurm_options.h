// The options that say who trains runs: --executor, --partition and what goes with them.
#pragma once

#include <string>

#include "cli/command.h"
#include "study/slurm_queue.h"

namespace fathom {

class CommandTree;

struct ExecutorChoice {
  std::string executor = "local";
  study::SlurmOptions slurm;

  bool is_slurm() const { return executor == "slurm"; }
  /// Not shown: only parsed.
  void add_options(CommandTree& tree, Command& command, bool shown = true);
};

}  // namespace fathom
