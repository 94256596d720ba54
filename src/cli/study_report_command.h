// fathom study report: the HTML report of a study.
#pragma once

namespace fathom {

class Command;
class CommandTree;

/// Adds `report` under `study`.
void add_study_report(CommandTree& tree, Command& study);

}  // namespace fathom
