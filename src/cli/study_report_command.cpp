#include "cli/study_report_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/command_line.h"
#include "cli/damage.h"
#include "cli/json_output.h"
#include "cli/open_page.h"
#include "core/files.h"
#include "report/render_report.h"
#include "report/report_document.h"
#include "study/study_rows.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string source;
  std::string output;
  bool open = false;
  bool json = false;
};

struct Source {
  Json document;
  fs::path file;  // of the document
};

/// The document named, or the one made from the study's runs and kept beside them.
Source read_source(Session& session, const std::string& source) {
  if (!fs::is_directory(source)) return {report::read_report_document(source), source};
  const study::StudyFolder folder(source);
  const fs::path file = folder.report_document();
  if (!folder.holds_study() && fs::exists(file)) return {report::read_report_document(file), file};
  tell_damage(session, study::damage_of(folder, study::collect_rows(folder.path())));
  Json document = report::make_report_document(folder.path());
  write_file_atomically(file, json_text(document, -1));
  return {std::move(document), file};
}

void run_report(Session& session, const Options& options) {
  const Source source = read_source(session, options.source);
  const fs::path page = options.output.empty() ? fs::path(source.file).replace_extension(".html")
                                               : fs::path(options.output);
  report::write_report(page, source.document);
  print_page(session, "study_report", page, options.json);
  if (options.open) open_page(session, page);
}

}  // namespace

void add_study_report(CommandTree& tree, Command& study) {
  auto options = std::make_shared<Options>();
  Command& command = tree.add(
      study, "report",
      {"Write the report of a study as one HTML file",
       "The file holds everything, charts and data, and opens without a network. It prints the "
       "path it wrote.",
       {{"study report runs/quick", "writes runs/quick/report.html"},
        {"study report runs/quick -o quick.html --open", "and shows it in the browser"},
        {"study report document.json",
         fmt::format("from a report document (schema {})", report::kReportSchema)}}},
      [options](Session& session) { run_report(session, *options); });
  command.add_option("STUDY", options->source, "A study's folder, or a report document")
      ->required();
  command.add_option("-o,--output", options->output, "The file to write (default report.html)")
      ->type_name("FILE");
  command.add_flag("--open", options->open, "Open it in the browser");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
