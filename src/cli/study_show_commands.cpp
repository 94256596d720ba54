// fathom study status, list and show: what a study's folders say.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/json_output.h"
#include "cli/study_commands.h"
#include "core/error.h"
#include "core/files.h"
#include "core/units.h"
#include "study/export.h"
#include "study/study_index.h"
#include "terminal/table.h"

namespace fathom {

namespace fs = std::filesystem;

namespace {

using study::RunRow;
using study::RunStatus;

struct Options {
  std::string directory, id, where, order;
  bool json = false;
};

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "-";
}

std::string rows_table(const Session& session, const std::vector<RunRow>& rows) {
  Table table({{"run"},
               {"L x D", Align::right},
               {"N", Align::right},
               {"tokens", Align::right},
               {"seed", Align::right},
               {"loss", Align::right},
               {"bits/byte", Align::right},
               {"time", Align::right},
               {"status"}});
  for (const RunRow& row : rows) {
    table.add_row({row.id.empty() ? "-" : row.id, fmt::format("{} x {}", row.layers, row.width),
                   row.params > 0 ? format_count(row.params) : "-",
                   row.tokens > 0 ? format_count(row.tokens) : "-", std::to_string(row.seed),
                   loss_text(row.loss), loss_text(row.bits_per_byte),
                   row.seconds > 0 ? format_seconds(row.seconds) : "-",
                   to_string(row.status) + (row.in_spec ? "" : ", not in the spec") +
                       (row.reason.empty() ? "" : ": " + row.reason)});
  }
  return table.render(session.terminal);
}

Json row_json(const RunRow& row) {
  return Json::parse(study::export_json({row}))["runs"][0];
}

void show_status(Session& session, const Options& options) {
  const study::Study study = study::open_study(options.directory);
  const std::vector<RunRow> rows = collect_rows(study);
  std::map<std::string, std::size_t> counts;
  for (const RunRow& row : rows) counts[row.in_spec ? to_string(row.status) : "not in the spec"]++;
  const auto holder = study::FileLock::holder(study::study_lock_path(options.directory));
  if (options.json) {
    Json document = json_document("study_status");
    document["directory"] = study.directory.string();
    document["runs"] = study.runs.size();
    document["active"] = holder.has_value();
    for (const char* status :
         {"pending", "running", "interrupted", "finished", "early_stopped", "diverged", "failed"}) {
      document[status] = counts[status];
    }
    document["problems"] = Json::array();
    for (const RunRow& row : rows) {
      if (!row.reason.empty()) document["problems"].push_back(row_json(row));
    }
    return print_json(session, document);
  }
  session.out << fmt::format("{}  {}\n\n", session.terminal.accent("fathom study status"),
                             study.directory.string());
  for (const auto& [status, count] : counts) {
    session.out << fmt::format("  {:>5}  {}\n", count, status);
  }
  std::vector<RunRow> shown;
  for (const RunRow& row : rows) {
    if (row.status == RunStatus::running) {
      const study::RunTail tail = study::read_run_tail(study.run_folder(row.id));
      session.out << fmt::format("  {}  {} x {} seed {}: step {}, loss {:.4f}\n", row.id,
                                 row.layers, row.width, row.seed, tail.step, tail.loss);
    } else if (!row.reason.empty()) {
      shown.push_back(row);
    }
  }
  if (!shown.empty()) session.out << "\n" << rows_table(session, shown);
  session.out << (holder ? fmt::format("\n  process {} on {} is at it\n", holder->pid, holder->host)
                         : std::string("\n  no command is at it\n"));
}

void list_runs(Session& session, const Options& options) {
  study::StudyIndex index(options.directory);
  index.rebuild(study::collect_rows(fs::path(options.directory)));
  const auto rows = index.query(options.where, options.order);
  if (options.json) {
    session.out << study::export_json(rows);
  } else {
    session.out << rows_table(session, rows);
  }
}

/// The one run whose id begins so.
RunRow find_row(const Options& options) {
  std::vector<RunRow> found;
  for (const RunRow& row : study::collect_rows(fs::path(options.directory))) {
    if (row.id.starts_with(options.id)) found.push_back(row);
  }
  if (found.size() == 1) return found.front();
  throw ConfigError(fmt::format("{} runs of {} begin with '{}'; see 'fathom study list {}'",
                                found.size(), options.directory, options.id, options.directory));
}

void show_run(Session& session, const Options& options) {
  const RunRow row = find_row(options);
  const fs::path folder = fs::path(options.directory) / "runs" / row.id;
  const std::string spec =
      fs::exists(folder / "spec.toml") ? read_text_file(folder / "spec.toml") : "";
  const study::RunTail tail = study::read_run_tail(folder);
  if (options.json) {
    Json document = json_document("study_run_shown");
    document["run"] = row_json(row);
    document["folder"] = folder.string();
    document["step"] = tail.step;
    document["spec"] = spec;
    document["curve"] = Json::array();
    for (const auto& [step, loss] : study::read_curve(folder, 1, 1000)) {
      document["curve"].push_back({step, loss});
    }
    return print_json(session, document);
  }
  session.out << rows_table(session, {row})
              << fmt::format("\n  {}\n  step {}, training loss {:.4f}\n\n", folder.string(),
                             tail.step, tail.loss)
              << "  step  held-out loss\n";
  for (const auto& [step, loss] : study::read_curve(folder, 1, 20)) {
    session.out << fmt::format("  {:>4.0f}  {:.4f}\n", step, loss);
  }
  session.out << "\n" << spec;
}

}  // namespace

void add_study_status(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<Options>();
  Command& command =
      tree.add(parent, "status",
               {"How far a study is, and what went wrong",
                "Counts the runs by state and names those that failed or diverged, with the "
                "reason.",
                {{"study status my-study", ""}, {"study status my-study --json", "for a script"}}},
               [options](Session& session) { show_status(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  command.add_flag("--json", options->json, "Print JSON");
}

void add_study_list(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<Options>();
  Command& command = tree.add(
      parent, "list",
      {"The runs of a study as a table",
       "Reads the run folders into the index and lists it. Conditions are SQL over the columns "
       "id, layers, width, heads, params, total_params, tokens, seed, loss, bits_per_byte, "
       "status, reason, seconds, tokens_per_second, flops, in_spec.",
       {{"study list my-study", "all runs"},
        {"study list my-study --where \"layers=4 and loss<4\" --order loss", "a selection"}}},
      [options](Session& session) { list_runs(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  command.add_option("--where", options->where, "SQL condition")->type_name("SQL");
  command.add_option("--order", options->order, "Column to sort by")->type_name("SQL");
  command.add_flag("--json", options->json, "Print JSON");
}

void add_study_show(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<Options>();
  Command& command = tree.add(parent, "show",
                              {"One run: its state, its losses, its spec",
                               "The run is named by the first characters of its id.",
                               {{"study show my-study 3f9a", ""}}},
                              [options](Session& session) { show_run(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  command.add_option("ID", options->id, "Beginning of the run's id")->required();
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
