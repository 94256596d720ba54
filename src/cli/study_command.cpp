// fathom study: a grid of models on one corpus, from spec to records.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/keys_table.h"
#include "cli/study_commands.h"
#include "cli/study_fit_command.h"
#include "cli/study_report_command.h"
#include "cli/text_output.h"
#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "planner/run_spec.h"
#include "study/rounds.h"
#include "study/study_folder.h"

namespace fathom {

namespace fs = std::filesystem;

void StudySource::add_options(CommandTree& tree, Command& command) {
  tree.restrict(command.add_option("--preset", preset, "A built-in study")->type_name("NAME"),
                study::preset_names());
  command.add_option("--corpus", corpus, "Text to train on: a file, a folder or a name")
      ->type_name("PATH");
  command.add_option("--set", settings, "Override one value: table.key=value")
      ->type_name("KEY=VALUE");
}

std::vector<std::string> StudySource::all_settings() const {
  std::vector<std::string> all = settings;
  if (!corpus.empty()) {
    all.push_back("corpus.path=" + toml_text(corpus));
  }
  return all;
}

study::StudySpec StudySource::read(const std::string& file) const {
  if (!preset.empty() && !file.empty()) {
    throw ConfigError(fmt::format("give a spec file or --preset, not both ({}, {})", file, preset));
  }
  if (preset.empty() && file.empty()) {
    throw ConfigError("give a spec file or --preset quick; see 'fathom study --help'");
  }
  std::error_code error;
  const bool folder = fs::is_directory(file, error);
  study::StudySpec spec =
      preset.empty()
          ? study::read_study_spec(folder ? study::StudyFolder(file).spec() : fs::path(file),
                                   all_settings())
          : study::read_study_spec_text(study::preset_text(preset), "preset " + preset,
                                        all_settings());
  if (spec.design) study::check_design(spec);
  return spec;
}

namespace {

struct InitOptions {
  std::string preset, output, around;
  bool keys = false;
};

void run_init(Session& session, const InitOptions& options) {
  if (options.keys) return print_keys(session, study::describe_study_spec());
  if (options.preset.empty() == options.around.empty()) {
    throw ConfigError("give either a preset or --around SIZE; see 'fathom study init --help'");
  }
  const std::string text =
      options.around.empty() ? study::preset_text(options.preset)
                             : planner::study_around_text(parse_count(options.around, "--around"));
  if (fs::is_regular_file(options.output)) {
    throw ConfigError(fmt::format("{} exists; choose another name", options.output));
  }
  if (!write_text_output(session, options.output, text)) return;
  session.out << fmt::format("{}  edit it, then: fathom study plan {}\n", options.output,
                             options.output);
}

}  // namespace

void add_study_init(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<InitOptions>();
  Command& command = tree.add(
      parent, "init",
      {"Write a preset's spec to your own file",
       "Prints the TOML of a preset, or writes it to a new file, as a starting point for your own "
       "study.",
       {{"study init quick -o study.toml", "a copy to edit"},
        {"study init --around 10M -o study.toml", "depths and sizes planned around a budget"},
        {"study init --keys",
         "the keys of a spec; train --keys: those of its [model] and [train]"}}},
      [options](Session& session) { run_init(session, *options); });
  tree.restrict(command.add_option("PRESET", options->preset, join(study::preset_names(), ", ")),
                study::preset_names());
  command
      .add_option("--around", options->around,
                  "Plan the grid around this size instead: depths from a quarter to twice its best "
                  "depth, sizes from a sixteenth of it")
      ->type_name("SIZE");
  command.add_flag("--keys", options->keys, "List every key of a study's spec and what it means");
  command.add_option("-o,--output", options->output, "File to write (default: print)")
      ->type_name("FILE");
}

void add_study_command(CommandTree& tree) {
  Command& command =
      tree.add(tree.root(), "study",
               {"Train a grid of models and see where depth pays",
                "A study is a TOML file (corpus, shapes, budget, training) and a directory that "
                "holds the tokens, one folder per run and an index. A run is named by the hash of "
                "everything that determines it: nothing is trained twice, and a study stopped at "
                "any moment continues where it left off.",
                {{"study plan --preset quick", "the runs, their cost and how long they take here"},
                 {"study run --preset quick my-study", "train them"},
                 {"study status my-study", "how far along it is"},
                 {"study run my-study", "continue after an interruption"},
                 {"study init levine -o mine.toml", "a spec to edit"}}},
               nullptr);
  add_study_init(tree, command);
  add_study_plan(tree, command);
  add_study_run(tree, command);
  add_study_status(tree, command);
  add_study_stop(tree, command);
  add_study_list(tree, command);
  add_study_show(tree, command);
  add_study_export(tree, command);
  add_study_reindex(tree, command);
  add_study_fit(tree, command);
  add_study_robust(tree, command);
  add_study_report(tree, command);
  add_study_worker(tree, command);
  add_study_task(tree, command);
  add_study_findings(tree, command);
}

}  // namespace fathom
