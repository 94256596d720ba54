#include "cli/study_report_command.h"

#include <fmt/format.h>
#include <spawn.h>

#include <filesystem>

#include "cli/command_line.h"
#include "cli/json_output.h"
#include "cli/study_fit_json.h"
#include "core/error.h"
#include "core/files.h"
#include "fits/study_fit.h"
#include "fits/study_law.h"
#include "report/render_report.h"
#include "study/report_data.h"
#include "study/study_rows.h"

extern char** environ;

namespace fathom {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostDocumentBytes = std::size_t{1} << 30;

struct Options {
  std::string source;
  std::string output;
  bool open = false;
  bool json = false;
};

/// What the finished runs say, as JSON; "" when there is nothing to fit yet. The law is kept beside
/// the study for `plan --law study:DIR`.
std::string fit_of(const fs::path& study) {
  const auto points = study::points_of(study::collect_rows(study));
  if (points.empty()) return "";
  const fits::StudyFit fit = fits::fit_study(points, {});
  write_file_atomically(study / "law.json", fits::study_law_text(fits::study_law_data(fit)));
  return study_fit_json(fit).dump();
}

/// The document's file: the one named, or the one made from the study's records.
fs::path document_path(const std::string& source) {
  if (!fs::is_directory(source)) return source;
  const fs::path document = fs::path(source) / "report.json";
  const bool is_study =
      fs::exists(fs::path(source) / "study.toml") || fs::exists(fs::path(source) / "runs");
  if (!is_study && fs::exists(document)) return document;
  write_file_atomically(document, study::report_data(source, fit_of(source)));
  return document;
}

fs::path output_path(const Options& options, const fs::path& document) {
  if (!options.output.empty()) return options.output;
  return fs::path(document).replace_extension(".html");
}

/// Hands the page to the desktop's browser and does not wait for it.
void open_in_browser(Session& session, const fs::path& page) {
  std::string program = "xdg-open";
  std::string file = fs::absolute(page).string();
  char* arguments[] = {program.data(), file.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0) {
    session.err << "fathom: no xdg-open here; open the file yourself\n";
  }
}

void run_report(Session& session, const Options& options) {
  const fs::path document = document_path(options.source);
  const fs::path page = output_path(options, document);
  report::write_report(page, read_text_file(document, kMostDocumentBytes), document.string());
  if (options.json) {
    Json result = json_document("study_report");
    result["path"] = page.string();
    result["bytes"] = fs::file_size(page);
    print_json(session, result);
  } else {
    session.out << page.string() << "\n";
  }
  if (options.open) open_in_browser(session, page);
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
        {"study report document.json", "from a report document (schema fathom.report/1)"}}},
      [options](Session& session) { run_report(session, *options); });
  command.add_option("STUDY", options->source, "A study's folder, or a report document")
      ->required();
  command.add_option("-o,--output", options->output, "The file to write (default report.html)")
      ->type_name("FILE");
  command.add_flag("--open", options->open, "Open it in the browser");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
