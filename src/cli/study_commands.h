// The subcommands of `fathom study`, one small file each, and the options they share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "study/study_spec.h"

namespace fathom {

/// Where a study's spec comes from: a file, a preset, or a study directory.
struct StudySource {
  std::string preset;
  std::string corpus;
  std::vector<std::string> settings;

  void add_options(CommandTree& tree, Command& command);
  /// All --set settings, --corpus included.
  std::vector<std::string> all_settings() const;
  /// From `file` (a spec, or a study directory), or the preset when `file` is empty.
  study::StudySpec read(const std::string& file) const;
};

void add_study_init(CommandTree& tree, Command& parent);
void add_study_plan(CommandTree& tree, Command& parent);
void add_study_run(CommandTree& tree, Command& parent);
void add_study_stop(CommandTree& tree, Command& parent);
void add_study_worker(CommandTree& tree, Command& parent);
void add_study_task(CommandTree& tree, Command& parent);
void add_study_findings(CommandTree& tree, Command& parent);
void add_study_status(CommandTree& tree, Command& parent);
void add_study_list(CommandTree& tree, Command& parent);
void add_study_show(CommandTree& tree, Command& parent);
void add_study_export(CommandTree& tree, Command& parent);
void add_study_reindex(CommandTree& tree, Command& parent);
void add_study_robust(CommandTree& tree, Command& parent);

}  // namespace fathom
