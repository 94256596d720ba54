#include "cli/study_fit_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/command_line.h"
#include "cli/study_fit_json.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "core/units.h"
#include "fits/run_points_csv.h"
#include "fits/study_fit.h"
#include "fits/study_law.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using namespace fits;

struct Options {
  std::string path;
  std::vector<std::string> where;
  std::string params_column;
  std::string save;
  std::string holdout_above;
  FitOptions fit;
  bool json = false;
};

PointSelection selection_of(const Options& options) {
  PointSelection selection;
  selection.params_column = options.params_column;
  for (const std::string& condition : options.where) {
    const std::size_t equals = condition.find('=');
    if (equals == std::string::npos) {
      throw ConfigError(
          fmt::format("--where '{}' must look like COLUMN=VALUE or COLUMN!=VALUE", condition));
    }
    const bool differs = equals > 0 && condition[equals - 1] == '!';
    selection.where.push_back({condition.substr(0, differs ? equals - 1 : equals),
                               condition.substr(equals + 1), !differs});
  }
  return selection;
}

std::string count_or_dash(const std::optional<double>& value) {
  return value ? format_count(*value) : "-";
}

void print_transitions(Session& session, const StudyFit& fit) {
  if (fit.transitions.empty()) return;
  Table table({{"deeper wins", Align::right},
               {"status"},
               {"from N", Align::right},
               {"95 % low", Align::right},
               {"high", Align::right},
               {"width", Align::right},
               {"note"}});
  for (const Transition& t : fit.transitions) {
    table.add_row({fmt::format("{} over {}", t.deep, t.shallow), to_string(t.status),
                   count_or_dash(t.params), count_or_dash(t.low), count_or_dash(t.high),
                   t.width ? fmt::format("{:.0f}", *t.width) : "-", t.note});
  }
  session.out << "\n  Transitions at equal size\n"
              << session.terminal.plain(table.render(session.terminal));
}

void print_law(Session& session, const StudyFit& fit) {
  if (!fit.law) return;
  Table table({{"ln d = a + b·L"},
               {"a", Align::right},
               {"b", Align::right},
               {"chi2/dof", Align::right},
               {"from published", Align::right}});
  for (const auto& law : {fit.law, fit.law_midpoint}) {
    if (!law) continue;
    table.add_row({fmt::format("carried by the {}", to_string(law->reading)),
                   fmt::format("{:.3f} ± {:.3f}", law->a, law->a_error),
                   fmt::format("{:.4f} ± {:.4f}", law->b, law->b_error),
                   fmt::format("{:.2f}/{}", law->chi2, law->degrees_of_freedom),
                   fmt::format("{:+.1f} σ, {:+.1f} σ", law->a_score, law->b_score)});
  }
  table.add_row({"Levine 2020", "5.039 ± 0.030", "0.0555 ± 0.0013"});
  session.out << "\n  The width from which depth pays\n"
              << session.terminal.plain(table.render(session.terminal));
}

void print_joint(Session& session, const StudyFit& fit) {
  if (!fit.joint) return;
  Table table({{"form"},
               {"coefficients", Align::right},
               {"mean error", Align::right},
               {"left out", Align::right},
               {"AIC", Align::right},
               {"unphysical", Align::right}});
  for (const JointFit& form : fit.forms) {
    table.add_row({form.form.name(), std::to_string(form.form.size()),
                   fmt::format("{:.3f} %", 100 * form.mean_error),
                   form.holdout_error ? fmt::format("{:.3f} %", 100 * *form.holdout_error) : "-",
                   fmt::format("{:+.1f}", form.aic - fit.joint->aic),
                   std::to_string(form.rejected)});
  }
  session.out << "\n  Joint laws (w width, L depth, P parameters, T tokens; AIC above the best)\n"
              << session.terminal.plain(table.render(session.terminal));
}

void run_fit(const Options& options, Session& session) {
  const auto points = read_run_points(options.path, selection_of(options));
  FitOptions fit_options = options.fit;
  fit_options.joint.seed = fit_options.seed;
  if (!options.holdout_above.empty()) {
    fit_options.holdout_tokens_above = parse_count(options.holdout_above, "--holdout-above");
  }
  const StudyFit fit = fit_study(points, fit_options);
  // A study keeps its law beside its runs, where `plan --law study:DIR` looks for it; a law of some
  // of its runs is another thing.
  const bool is_study = std::filesystem::is_directory(options.path) && options.where.empty();
  const std::string save = options.save.empty() && is_study
                               ? (std::filesystem::path(options.path) / "law.json").string()
                               : options.save;
  if (!save.empty()) {
    write_file_atomically(save, study_law_text(study_law_data(fit)));
    session.err << fmt::format("law written to {}; use it with 'fathom plan --law study:{}'\n",
                               save, is_study && options.save.empty() ? options.path : save);
  }
  if (options.json) {
    print_json(session, study_fit_json(fit));
    return;
  }
  session.out << fmt::format("\n  {} runs, {} to {} parameters, {:.0f} to {:.0f} layers\n",
                             fit.runs, format_count(fit.params.low), format_count(fit.params.high),
                             fit.layers.low, fit.layers.high);
  print_transitions(session, fit);
  print_law(session, fit);
  print_joint(session, fit);
  for (const std::string& warning : fit.warnings) session.out << "\n  ! " << warning << "\n";
  session.out << "\n  " << join(fit.answer, " ") << "\n";
}

}  // namespace

void add_study_fit(CommandTree& tree, Command& study) {
  auto options = std::make_shared<Options>();
  Command& command = tree.add(
      study, "fit",
      {"Fit transitions and laws to finished runs",
       "Reads a study's folder (its points.csv) or a CSV with the columns id, layers, width, "
       "params, tokens, loss, seed; 'depth' and 'nonembedding_params' are understood too. Tells "
       "where deeper networks start to win at equal size, the law through those sizes, and a joint "
       "law in width, depth, parameters and tokens, each with its uncertainty. What the runs "
       "cannot "
       "tell is said, not fitted.",
       {{"study fit my-study", "the answer in three sentences, with tables"},
        {"study fit runs.csv --save law.json", "then: fathom plan 1.3B --law study:law.json"},
        {"study fit gemstones.csv --where phase=cooldown --where flag= --json",
         "rows of a wider table, for a script"}}},
      [options](Session& session) { run_fit(*options, session); });
  command.add_option("PATH", options->path, "Study folder or CSV of runs")->required();
  command
      .add_option("--where", options->where,
                  "Only rows with this value; COLUMN!=VALUE: only the others (may be repeated)")
      ->type_name("COLUMN=VALUE");
  command.add_option("--params-column", options->params_column, "Column that counts parameters")
      ->type_name("COLUMN");
  command.add_option("--save", options->save, "Write the law to this file")->type_name("FILE");
  command
      .add_option("--huber", options->fit.joint.delta,
                  "Where the joint fit turns from squares to absolute errors, in ln loss")
      ->check(Range{1e-6, 1.0});
  command.add_option("--starts", options->fit.joint.starts, "Starts of the joint fit (default 60)")
      ->check(Range{1, 100000});
  command
      .add_option("--replicates", options->fit.joint_replicates,
                  "Bootstrap refits of the joint law (default 200)")
      ->check(Range{0, 100000});
  command
      .add_option("--holdout-above", options->holdout_above,
                  "Count left-out runs only beyond so many tokens, e.g. 50B")
      ->type_name("TOKENS");
  command.add_option("--seed", options->fit.seed, "Seed of starts and bootstrap (default 1)");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
