// fathom study status, list and show: what a study's folders say.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/damage.h"
#include "cli/json_output.h"
#include "cli/study_commands.h"
#include "cli/text_output.h"
#include "core/counts.h"
#include "core/files.h"
#include "core/text.h"
#include "core/units.h"
#include "study/design_text.h"
#include "study/export.h"
#include "study/rounds.h"
#include "study/study_index.h"
#include "study/study_rows.h"
#include "terminal/table.h"
#include "train/metrics_file.h"

namespace fathom {

namespace fs = std::filesystem;

namespace {

using study::row_json;
using study::RunRow;
using study::RunStatus;

struct StudyShowOptions {
  std::string directory, id, where, order, columns;
  bool json = false;
};

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "-";
}

std::string count_text(std::int64_t count) {
  return count > 0 ? format_count(as_double(count)) : "-";
}

constexpr std::size_t kLongestReason = 500;

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
    table.add_row({row.id.empty() ? "-" : printable(row.id),
                   fmt::format("{} x {}", row.layers, row.width), count_text(row.non_embedding),
                   count_text(row.tokens), std::to_string(row.seed), loss_text(row.final_loss),
                   loss_text(row.final_bits_per_byte),
                   row.seconds > 0 ? format_seconds(row.seconds) : "-",
                   to_string(row.status) + (row.in_spec ? "" : ", not in the spec") +
                       (row.reason.empty() ? "" : ": " + printable(row.reason, kLongestReason))});
  }
  return table.render(session.terminal);
}

void show_status(Session& session, const StudyShowOptions& options) {
  const study::Study study = study::open_study(options.directory);
  const std::vector<RunRow> rows = collect_rows(study);
  std::map<std::string, std::size_t> counts;
  for (const RunRow& row : rows) counts[row.in_spec ? to_string(row.status) : "not in the spec"]++;
  const auto holder = FileLock::holder(study.folder.lock());
  std::optional<study::DesignProgress> design;
  if (study.spec.design) {
    design = study::look_at_design(study, rows);
  }
  if (options.json) {
    Json document = json_document("study_status");
    document["directory"] = study.folder.name();
    document["runs"] = study.runs.size();
    document["active"] = holder.has_value();
    for (const RunStatus status : kEnumValues<RunStatus>) {
      document[name_of(status)] = counts[name_of(status)];
    }
    document["problems"] = Json::array();
    for (const RunRow& row : rows) {
      if (!row.reason.empty()) document["problems"].push_back(row_json(row));
    }
    if (design) document["design"] = study::design_json(*design, *study.spec.design);
    return print_json(session, document);
  }
  session.out << fmt::format("{}  {}\n\n", session.terminal.accent("fathom study status"),
                             study.folder.name());
  for (const auto& [status, count] : counts) {
    session.out << fmt::format("  {:>5}  {}\n", count, status);
  }
  std::vector<RunRow> shown;
  for (const RunRow& row : rows) {
    if (row.status == RunStatus::running) {
      const train::RunTail tail = train::read_run_tail(study.folder.run(row.id).metrics());
      session.out << fmt::format("  {}  {} x {} seed {}: step {}, loss {:.4f}\n", row.id,
                                 row.layers, row.width, row.seed, tail.step, tail.loss);
    } else if (!row.reason.empty()) {
      shown.push_back(row);
    }
  }
  if (!shown.empty()) session.out << "\n" << rows_table(session, shown);
  if (design) {
    session.out << "\n";
    for (const std::string& line : study::design_lines(*design, *study.spec.design)) {
      session.out << "  " << line << "\n";
    }
  }
  session.out << (holder ? fmt::format("\n  process {} on {} is working on it\n", holder->pid,
                                       holder->host)
                         : std::string("\n  no command is working on it\n"));
}

/// The chosen columns of every row, as they are in the index.
std::string columns_table(const Session& session, const std::vector<RunRow>& rows,
                          const std::vector<std::string>& columns) {
  std::vector<Table::Column> heads;
  for (const std::string& column : columns) heads.push_back({column, Align::right});
  Table table(heads);
  for (const RunRow& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      cells.push_back(printable(column_text(row, column), kLongestReason));
    }
    table.add_row(cells);
  }
  return table.render(session.terminal);
}

void list_runs(Session& session, const StudyShowOptions& options) {
  const std::vector<RunRow> runs = study::collect_rows(fs::path(options.directory));
  tell_damage(session, study::damaged_records(runs));
  const study::StudyIndex index(runs);
  const auto rows = index.query(options.where, options.order);
  if (options.json) {
    print_json(session, study::export_json(rows));
  } else if (!options.columns.empty()) {
    session.out << columns_table(session, rows, split(options.columns, ','));
  } else {
    session.out << rows_table(session, rows);
  }
}

void show_run(Session& session, const StudyShowOptions& options) {
  const RunRow row = study::find_row(options.directory, options.id);
  const study::StudyRunFolder folder = study::StudyFolder(options.directory).run(row.id);
  const std::string spec = fs::exists(folder.spec()) ? read_text_file(folder.spec()) : "";
  const train::RunTail tail = train::read_run_tail(folder.metrics());
  tell_damage(session, study::damage_of(study::StudyFolder(options.directory), {row}));
  if (options.json) {
    Json document = json_document("study_show");
    document["run"] = row_json(row);
    document["folder"] = folder.path().string();
    document["step"] = tail.step;
    document["spec"] = spec;
    document["curve"] = Json::array();
    for (const auto& [step, loss] : study::read_curve(folder, 1000)) {
      document["curve"].push_back({step, loss});
    }
    return print_json(session, document);
  }
  session.out << rows_table(session, {row})
              << fmt::format("\n  {}\n  step {}, training loss {:.4f}\n\n", folder.path().string(),
                             tail.step, tail.loss)
              << "  step  held-out loss\n";
  for (const auto& [step, loss] : study::read_curve(folder, 20)) {
    session.out << fmt::format("  {:>4}  {:.4f}\n", step, loss);
  }
  session.out << "\n" << printable_lines(spec);
}

}  // namespace

void add_study_status(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<StudyShowOptions>();
  Command& command =
      tree.add(parent, "status",
               {"Show a study's progress and what went wrong",
                "Counts the runs by state and names those that failed or diverged, with the "
                "reason. For a study with a [design] it reports what is decided, what is not and "
                "what the next round costs.",
                {{"study status my-study", ""}, {"study status my-study --json", "for a script"}}},
               [options](Session& session) { show_status(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  command.add_flag("--json", options->json, "Print JSON");
}

void add_study_list(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<StudyShowOptions>();
  Command& command = tree.add(
      parent, "list",
      {"List the runs of a study as a table",
       fmt::format("Reads the run folders. Conditions are SQL over the columns {}.",
                   join(study::column_names(), ", ")),
       {{"study list my-study", "all runs"},
        {"study list my-study --where \"layers=4 and loss<4\" --order loss", "a selection"}}},
      [options](Session& session) { list_runs(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  command.add_option("--where", options->where, "SQL condition")->type_name("SQL");
  command.add_option("--order", options->order, "Column to sort by")->type_name("SQL");
  command.add_option("--columns", options->columns, "Show these columns instead")
      ->type_name("NAME,NAME");
  command.add_flag("--json", options->json, "Print JSON");
}

void add_study_show(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<StudyShowOptions>();
  Command& command = tree.add(parent, "show",
                              {"Show one run: its state, losses and spec",
                               "The run is named by the first characters of its id.",
                               {{"study show my-study 3f9a", ""}}},
                              [options](Session& session) { show_run(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  command.add_option("ID", options->id, "Beginning of the run's id")->required();
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
