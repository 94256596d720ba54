// fathom lab report: the verdicts of a lab directory as one HTML page, or as pages of Markdown.
#include <filesystem>

#include "cli/lab_commands.h"
#include "cli/open_page.h"
#include "report/lab_document.h"
#include "report/lab_markdown.h"
#include "report/render_report.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

struct LabReportOptions {
  std::string directory;
  std::string output;
  std::string markdown;
  bool open = false;
  bool json = false;
};

void run_report(Session& session, const LabReportOptions& options) {
  if (!options.markdown.empty()) {
    for (const fs::path& page : report::write_lab_markdown(options.directory, options.markdown)) {
      session.out << page.string() << "\n";
    }
    return;
  }
  const fs::path page = options.output.empty() ? fs::path(options.directory) / "report.html"
                                               : fs::path(options.output);
  write_page(session, "lab_report", {page, options.open, options.json},
             report::render_lab(report::make_lab_document(options.directory)));
}

}  // namespace

void add_lab_report(CommandTree& tree, Command& lab_command) {
  auto options = std::make_shared<LabReportOptions>();
  Command& command = tree.add(
      lab_command, "report",
      {"Write the verdicts of a run as one HTML file",
       "Every claim with its criteria, numbers, charts and verdict, next to what this project "
       "found. The file is self-contained and opens without a network; it can be written while "
       "claims are still missing. Prints the path of the file.",
       {{"lab report my-lab", "writes my-lab/report.html"},
        {"lab report my-lab -o claims.html --open", "and shows it in the browser"},
        {"lab report my-lab --markdown pages", "a Markdown page for each claim, with charts"}}},
      [options](Session& session) { run_report(session, *options); });
  command.add_option("DIR", options->directory, "A directory of 'fathom lab run --out'")
      ->required();
  command
      .add_option("-o,--output", options->output,
                  "The file to write, - for standard output (default DIR/report.html)")
      ->type_name("FILE");
  command
      .add_option("--markdown", options->markdown, "Write Markdown pages to this folder instead")
      ->type_name("FOLDER");
  command.add_flag("--open", options->open, "Open it in the browser");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
