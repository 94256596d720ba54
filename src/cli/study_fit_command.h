// fathom study fit: the analysis of finished runs.
#pragma once

namespace CLI {
class App;
}

namespace fathom {

class CommandTree;

/// Adds `fit` below the study command.
void add_study_fit(CommandTree& tree, CLI::App& study);

}  // namespace fathom
