// fathom study: from a corpus to a fitted law. The work is in one file per subcommand.
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/study_fit_command.h"
#include "cli/study_report_command.h"

namespace fathom {

void add_study_command(CommandTree& tree) {
  CLI::App& study =
      tree.add(tree.root(), "study",
               {"Find the law of your own data",
                "What a set of training runs says about depth and width, and what it cannot say.",
                {{"study fit runs.csv", "transitions, the law through them, a joint law"},
                 {"study report runs/quick", "write a study's report as one HTML file"}}},
               {});
  add_study_fit(tree, study);
  add_study_report(tree, study);
}

}  // namespace fathom
