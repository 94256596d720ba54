// fathom lab: claims about depth, each an experiment with a criterion and a verdict.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/lab_commands.h"
#include "core/text.h"
#include "lab/frame/claim.h"
#include "lab/frame/claims_page.h"
#include "lab/frame/records.h"
#include "lab/frame/result_json.h"
#include "terminal/table.h"

namespace fathom {
namespace {

struct LabListOptions {
  std::string directory;
  bool markdown = false;
  bool json = false;
};

/// The verdict of the claim's own set-up among results of a directory, or "".
std::string verdict_in(const std::vector<lab::Json>& documents, const std::string& id) {
  for (const lab::Json& document : documents) {
    if (document["id"] == id && !document["own_setup"].get<bool>()) return document["verdict"];
  }
  return "";
}

void run_list(Session& session, const LabListOptions& options) {
  if (options.markdown) {
    session.out << lab::claims_page();
    return;
  }
  std::vector<lab::Json> documents;
  if (!options.directory.empty()) documents = lab::read_results(options.directory);
  if (options.json) {
    Json document = json_document("lab_list");
    document["claims"] = Json::array();
    for (const lab::Claim& claim : lab::claims()) {
      Json entry = lab::claim_json(claim);
      if (!documents.empty()) {
        const std::string verdict = verdict_in(documents, claim.id);
        entry["run"] = verdict.empty() ? Json(nullptr) : Json(verdict);
      }
      document["claims"].push_back(std::move(entry));
    }
    return print_json(session, document);
  }
  std::vector<Table::Column> columns{
      {"claim"}, {"verdict"}, {"by"}, {"what is claimed"}, {"source"}};
  if (!documents.empty()) columns.insert(columns.begin() + 2, {"your run"});
  Table table(columns);
  for (const lab::Claim& claim : lab::claims()) {
    std::vector<std::string> row{claim.id, to_string(claim.finding.verdict), to_string(claim.by),
                                 claim.title, claim.source};
    if (!documents.empty()) row.insert(row.begin() + 2, verdict_in(documents, claim.id));
    table.add_row(row);
  }
  session.out
      << session.terminal.plain(table.render(session.terminal))
      << "\n  'fathom lab show CLAIM' shows the details, 'fathom lab run CLAIM' tests it again.\n";
}

struct LabShowOptions {
  std::string id;
  bool json = false;
};

constexpr std::size_t kLabel = 13;
constexpr std::size_t kCriterionLabel = 16;

void print_paragraph(Session& session, const std::string& label, const std::string& text,
                     std::size_t label_width = kLabel) {
  if (text.empty()) return;
  std::string line = "  " + session.terminal.dim(pad(label, label_width, Align::left));
  const std::size_t room = std::max<std::size_t>(session.terminal.width, 60) - label_width - 2;
  for (const std::string& part : wrap(text, room)) {
    session.out << session.terminal.plain(line + part) << "\n";
    line = std::string(label_width + 2, ' ');
  }
}

void run_show(Session& session, const LabShowOptions& options) {
  const lab::Claim& claim = lab::find_claim(options.id);
  if (options.json) {
    Json document = json_document("lab_show");
    document.update(lab::claim_json(claim));
    document["ask"] = claim.ask;
    return print_json(session, document);
  }
  const Terminal& terminal = session.terminal;
  session.out << terminal.plain(fmt::format("{}  {}\n\n", terminal.accent(claim.id), claim.title));
  const std::string number = claim.arxiv.empty() ? "" : fmt::format(" (arXiv {})", claim.arxiv);
  print_paragraph(session, "source", fmt::format("{}{}, {}", claim.source, number, claim.place));
  print_paragraph(session, "claim", claim.statement);
  print_paragraph(session, "published", claim.published);
  print_paragraph(session, "experiment", claim.experiment);
  print_paragraph(session, "kind", to_string(claim.kind));
  print_paragraph(session, "cost",
                  claim.gpu_cost == "-"
                      ? claim.cpu_cost + " on two cores"
                      : fmt::format("two cores: {}; GPU: {}", claim.cpu_cost, claim.gpu_cost));
  session.out << "\n  Criteria, fixed beforehand\n";
  for (const lab::Criterion& criterion : claim.criteria) {
    print_paragraph(session, criterion.id, fmt::format("{}: {}", criterion.text, criterion.range()),
                    kCriterionLabel);
  }
  session.out << "\n";
  print_paragraph(session, "verdict",
                  fmt::format("{}, by {}", to_string(claim.finding.verdict), to_string(claim.by)));
  print_paragraph(session, "found", claim.finding.summary);
  print_paragraph(session, "to decide", claim.undecided);
  print_paragraph(session, "page", "docs/" + claim.page);
  print_paragraph(session, "again", "fathom lab run " + claim.id);
  if (!claim.ask.empty()) {
    print_paragraph(session, "ask", fmt::format("fathom lab run {} {}", claim.id, claim.ask));
  }
}

}  // namespace

void add_lab_list(CommandTree& tree, Command& lab_command) {
  auto options = std::make_shared<LabListOptions>();
  Command& command =
      tree.add(lab_command, "list",
               {"All claims and what was found",
                "The verdicts are those this project found with the full experiments. With the "
                "directory of your own run, its verdicts are shown next to them.",
                {{"lab list", "the table"}, {"lab list my-lab", "next to your own verdicts"}}},
               [options](Session& session) { run_list(session, *options); });
  command.add_option("DIR", options->directory, "A directory of 'fathom lab run --out'");
  command.add_flag("--markdown", options->markdown, "Print docs/claims.md");
  command.add_flag("--json", options->json, "Print JSON");
}

void add_lab_show(CommandTree& tree, Command& lab_command) {
  auto options = std::make_shared<LabShowOptions>();
  Command& command = tree.add(
      lab_command, "show",
      {"One claim: statement, experiment, criterion, verdict",
       "The criterion is data that was fixed before the experiment ran: a measured number and "
       "the range it must lie in.",
       {{"lab show rank-collapse", "what was claimed, what is measured, what came out"}}},
      [options](Session& session) { run_show(session, *options); });
  command.add_option("CLAIM", options->id, "Id of the claim, see 'fathom lab list'")->required();
  command.add_flag("--json", options->json, "Print JSON");
}

void add_lab_command(CommandTree& tree) {
  Command& command = tree.add(
      tree.root(), "lab",
      {"Claims about depth as experiments with verdicts",
       "Every claim is recorded as data: who made it and where, the experiment that tests it, the "
       "criterion that was fixed beforehand, and the verdict: holds, fails, holds in part, "
       "undecided. A failed criterion is a finding, not an error.",
       {{"lab list", "all claims and what was found"},
        {"lab show rank-collapse", "one claim with its criterion"},
        {"lab run rank-collapse", "test it again, here"},
        {"lab run hard-attention --regex '(ab)*' --alphabet ab --length 10",
         "a question of your own"},
        {"lab run all --quick --out my-lab", "every claim in minutes, kept in a directory"},
        {"lab report my-lab", "its verdicts as one page"}}},
      nullptr);
  add_lab_list(tree, command);
  add_lab_show(tree, command);
  add_lab_run(tree, command);
  add_lab_report(tree, command);
}

}  // namespace fathom
