// fathom study fit: the analysis of finished runs.
#pragma once

namespace fathom {

class Command;
class CommandTree;

/// Adds `fit` below the study command.
void add_study_fit(CommandTree& tree, Command& study);

}  // namespace fathom
