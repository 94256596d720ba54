// fathom study report: the HTML report of a study.
#pragma once

namespace CLI {
class App;
}

namespace fathom {

class CommandTree;

/// Adds `report` under `study`.
void add_study_report(CommandTree& tree, CLI::App& study);

}  // namespace fathom
