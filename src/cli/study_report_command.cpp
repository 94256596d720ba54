#include "cli/study_report_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/command_line.h"
#include "cli/damage.h"
#include "cli/json_output.h"
#include "cli/open_page.h"
#include "core/error.h"
#include "core/files.h"
#include "report/render_report.h"
#include "report/report_document.h"
#include "study/study_rows.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

struct StudyReportOptions {
  std::string source;
  std::string output;
  std::vector<std::string> columns;
  bool open = false;
  bool json = false;
};

struct Source {
  Json document;
  fs::path file;  // of the document
};

Source read_table(const StudyReportOptions& options) {
  fits::PointSelection selection;
  for (const std::string& text : options.columns) {
    selection.columns.insert(fits::parse_column(text));
  }
  return {report::make_table_document(options.source, selection), options.source};
}

/// The document named or made from a table, or the one made from the study's runs and kept next
/// to them.
Source read_source(Session& session, const StudyReportOptions& options) {
  const std::string& source = options.source;
  if (fs::path(source).extension() == ".csv") return read_table(options);
  if (!options.columns.empty()) throw ConfigError("--column goes with a table, RUNS.csv");
  if (!fs::is_directory(source)) return {report::read_report_document(source), source};
  const study::StudyFolder folder(source);
  const fs::path file = folder.report_document();
  if (!folder.holds_study() && fs::exists(file)) return {report::read_report_document(file), file};
  tell_damage(session, study::damage_of(folder, study::collect_rows(folder.path())));
  Json document = report::make_report_document(folder.path());
  write_file_atomically(file, json_text(document, -1));
  return {std::move(document), file};
}

void run_report(Session& session, const StudyReportOptions& options) {
  const Source source = read_source(session, options);
  const fs::path page = options.output.empty() ? fs::path(source.file).replace_extension(".html")
                                               : fs::path(options.output);
  write_page(session, "study_report", {page, options.open, options.json},
             report::render_report(source.document));
}

}  // namespace

void add_study_report(CommandTree& tree, Command& study) {
  auto options = std::make_shared<StudyReportOptions>();
  Command& command = tree.add(
      study, "report",
      {"Write the report of a study as one HTML file",
       "The file contains everything, charts and data, and opens without a network. Prints the "
       "path of the file.",
       {{"study report runs/quick", "writes runs/quick/report.html"},
        {"study report runs/quick -o quick.html --open", "and shows it in the browser"},
        {"study report sweep.csv --column loss=eval_nll", "runs that were trained elsewhere"},
        {"study report document.json",
         fmt::format("from a report document (schema {})", report::kReportSchema)}}},
      [options](Session& session) { run_report(session, *options); });
  command
      .add_option("STUDY", options->source,
                  "A study's folder, a table RUNS.csv or a report document")
      ->required();
  command
      .add_option("--column", options->columns,
                  "Column of RUNS.csv: layers=NAME, width, params, tokens, loss, seed, id")
      ->type_name("PART=NAME");
  command
      .add_option("-o,--output", options->output,
                  "The file to write, - for standard output (default report.html)")
      ->type_name("FILE");
  command.add_flag("--open", options->open, "Open it in the browser");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
