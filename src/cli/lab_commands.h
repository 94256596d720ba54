// The subcommands of fathom lab, one file each, and what they share.
#pragma once

#include "cli/command_line.h"
#include "lab/frame/runner.h"

namespace fathom {

void add_lab_list(CommandTree& tree, Command& lab);
void add_lab_show(CommandTree& tree, Command& lab);
void add_lab_run(CommandTree& tree, Command& lab);
void add_lab_report(CommandTree& tree, Command& lab);

/// Verdict, criteria, tables and notes of one claim's run, for the terminal.
std::string render_lab_result(const lab::LabResult& result, const Terminal& terminal);
/// One line per claim.
std::string render_lab_summary(const std::vector<lab::LabResult>& results,
                               const Terminal& terminal);

}  // namespace fathom
