// fathom study export and reindex: the runs for other programs, and the index rebuilt.
#include <fmt/format.h>

#include <chrono>

#include "cli/damage.h"
#include "cli/json_output.h"
#include "cli/study_commands.h"
#include "cli/text_output.h"
#include "core/error.h"
#include "core/units.h"
#include "report/report_document.h"
#include "study/export.h"
#include "study/ledger.h"

namespace fathom {

namespace fs = std::filesystem;

namespace {

struct StudyExportOptions {
  std::string directory, format = "csv", output;
  bool json = false;
};

/// The runs in a format that is one text.
std::string text_of(Session& session, const study::StudyFolder& folder, const std::string& format) {
  if (format == "report") {
    return json_text(report::make_report_document(folder.path()), -1) + "\n";
  }
  const auto rows = study::collect_rows(folder.path());
  tell_damage(session, study::damaged_records(rows));
  return format == "csv" ? study::export_csv(rows) : json_text(study::export_json(rows)) + "\n";
}

void export_study(Session& session, const StudyExportOptions& options) {
  const study::StudyFolder folder(options.directory);
  if (options.format != "tensorboard") {
    write_text_output(session, options.output, text_of(session, folder, options.format));
    return;
  }
  const fs::path output = options.output.empty() ? folder.tensorboard() : fs::path(options.output);
  const auto rows = study::collect_rows(folder.path());
  tell_damage(session, study::damage_of(folder, rows));
  const std::size_t count = study::export_tensorboard(folder, rows, output);
  session.out << fmt::format("{} runs; view them with: tensorboard --logdir {}\n", count,
                             output.string());
}

void rebuild(Session& session, const StudyExportOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto rows = study::rebuild_tables(options.directory);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::size_t points = study::points_of(rows).size();
  if (options.json) {
    Json document = json_document("study_reindex");
    document["runs"] = rows.size();
    document["points"] = points;
    document["seconds"] = seconds;
    return print_json(session, document);
  }
  session.out << fmt::format("{} runs in the index, {} points, {}\n", rows.size(), points,
                             format_seconds(seconds));
}

}  // namespace

void add_study_export(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<StudyExportOptions>();
  Command& command = tree.add(
      parent, "export",
      {"Export the runs for other programs",
       "csv and json give one row per run; tensorboard writes one event file per run with all its "
       "losses; report gives the JSON document that the HTML report shows.",
       {{"study export my-study > runs.csv", "a table"},
        {"study export my-study --format tensorboard", "to my-study/tensorboard"}}},
      [options](Session& session) { export_study(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  tree.restrict(command.add_option("--format", options->format, "What to write (default csv)"),
                {"csv", "json", "tensorboard", "report"});
  command.add_option("-o,--output", options->output, "File, or folder for tensorboard")
      ->type_name("PATH");
}

void add_study_reindex(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<StudyExportOptions>();
  Command& command =
      tree.add(parent, "reindex",
               {fmt::format("Rebuild {} and {} from the run folders", study::StudyFolder::kIndex,
                            study::StudyFolder::kPoints),
                "Both can be deleted at any time: the run folders hold all the data.",
                {{"study reindex my-study", ""}}},
               [options](Session& session) { rebuild(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
