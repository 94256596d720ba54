// fathom study: from a corpus to a fitted law. The work is in one file per subcommand.
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/study_report_command.h"

namespace fathom {

void add_study_command(CommandTree& tree) {
  CLI::App& command =
      tree.add(tree.root(), "study",
               {"Studies of depth and width",
                "",
                {{"study report runs/quick", "write a study's report as one HTML file"}}},
               nullptr);
  add_study_report(tree, command);
}

}  // namespace fathom
