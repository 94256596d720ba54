#include "cli/study_fit_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "cli/command_line.h"
#include "cli/damage.h"
#include "cli/json_output.h"
#include "cli/text_output.h"
#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "fits/run_points_csv.h"
#include "fits/study_fit.h"
#include "fits/study_fit_json.h"
#include "fits/study_law.h"
#include "laws/levine.h"
#include "study/fit.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using namespace fits;

struct StudyFitOptions {
  std::string path;
  std::vector<std::string> where;
  std::string params_column;
  std::string save;
  std::string holdout_above;
  FitOptions fit;
  bool json = false;
};

PointSelection selection_of(const StudyFitOptions& options) {
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

std::string range_text(const Transition& t) {
  switch (t.status) {
    case TransitionStatus::crossing:
      return fmt::format("{} ({} to {})", format_count(*t.params), format_count(*t.low),
                         format_count(*t.high));
    case TransitionStatus::below_grid:
      return "below " + format_count(*t.high);
    case TransitionStatus::above_grid:
      return "not before " + format_count(*t.low);
    case TransitionStatus::unclear:
      return "undecided";
  }
  return "";
}

/// One pair of depths: what all runs together say, and what the two curves alone do.
struct PairView {
  const Transition* surface = nullptr;
  const Transition* curves = nullptr;

  const Transition& any() const { return surface ? *surface : *curves; }
  bool has(bool (*test)(const Transition&)) const {
    return (surface && test(*surface)) || (curves && test(*curves));
  }
  bool crosses() const {
    return has([](const Transition& t) { return t.status == TransitionStatus::crossing; });
  }
  bool decided() const {
    return has([](const Transition& t) { return t.status != TransitionStatus::unclear; });
  }
};

std::vector<PairView> pairs_of(const StudyFit& fit) {
  std::map<std::pair<std::int64_t, std::int64_t>, PairView> pairs;
  if (fit.surface) {
    for (const Transition& t : fit.surface->crossings) pairs[{t.shallow, t.deep}].surface = &t;
  }
  for (const Transition& t : fit.transitions) pairs[{t.shallow, t.deep}].curves = &t;
  std::vector<PairView> list;
  for (const auto& [depths, pair] : pairs) list.push_back(pair);
  return list;
}

/// Decided pairs are listed, the others counted. Of many depths only neighbours are listed.
void print_transitions(Session& session, const StudyFit& fit) {
  constexpr std::ptrdiff_t kMostListed = 15;
  const std::vector<PairView> pairs = pairs_of(fit);
  if (pairs.empty()) return;
  const bool all = std::count_if(pairs.begin(), pairs.end(),
                                 [](const auto& p) { return p.crosses(); }) <= kMostListed;
  Table table({{"deeper wins", Align::right}, {"from N (95 %)"}, {"two curves alone"}, {"note"}});
  std::size_t listed = 0;
  std::size_t undecided = 0;
  for (const PairView& pair : pairs) {
    undecided += !pair.decided();
    if (!(all && pair.crosses()) && !(pair.decided() && pair.any().adjacent)) continue;
    ++listed;
    table.add_row({fmt::format("{} over {}", pair.any().deep, pair.any().shallow),
                   pair.surface ? range_text(*pair.surface) : "-",
                   pair.curves ? range_text(*pair.curves) : "-",
                   pair.curves ? pair.curves->note : ""});
  }
  session.out << "\n  From which size the deeper network wins\n";
  if (listed > 0) session.out << session.terminal.plain(table.render(session.terminal));
  if (listed < pairs.size()) {
    session.out << fmt::format("  {} of {} pairs undecided; {} more decided or bounded (--json)\n",
                               undecided, pairs.size(), pairs.size() - listed - undecided);
  }
}

void print_best_depths(Session& session, const SurfaceFit& surface) {
  Table table({{"parameters", Align::right},
               {"best depth", Align::right},
               {"95 % low", Align::right},
               {"high", Align::right}});
  const auto layers = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.1f}", *value) : "-";
  };
  for (const BestDepth& best : surface.best_depth) {
    table.add_row(
        {format_count(best.params), layers(best.layers), layers(best.low), layers(best.high)});
  }
  session.out << "\n  The best depth, from all runs together\n"
              << session.terminal.plain(table.render(session.terminal));
}

void print_forms(Session& session, const SurfaceFit& surface) {
  Table table({{"the best depth follows"},
               {"probability", Align::right},
               {"AIC", Align::right},
               {"size left out", Align::right}});
  const auto title = [&](LawForm form) -> std::string {
    switch (form) {
      case LawForm::exponential:
        return fmt::format("ln d = {:.3f} + {:.4f}·L", surface.law.a, surface.law.b);
      case LawForm::power:
        return fmt::format("L ~ N^{:.2f} ({:.2f} to {:.2f})", surface.slope,
                           surface.slope_interval.low, surface.slope_interval.high);
      case LawForm::ratio:
        return "a fixed ratio d/L";
      case LawForm::free:
        return "a free curve";
    }
    return "";
  };
  for (const SurfaceForm& form : surface.forms) {
    table.add_row({title(form.form), fmt::format("{:.0f} %", 100 * form.probability),
                   fmt::format("{:+.1f}", form.delta_aic),
                   fmt::format("{:.3f} %", 100 * form.heldout_error)});
  }
  session.out << "\n  Which law (AIC above the least; error at a size left out)\n"
              << session.terminal.plain(table.render(session.terminal));
}

void print_lengths(Session& session, const SurfaceFit& surface) {
  if (surface.lengths.size() < 2) return;
  Table table({{"of the longest", Align::right},
               {"tokens", Align::right},
               {"runs", Align::right},
               {"a", Align::right},
               {"b", Align::right},
               {"best depth at the largest size", Align::right}});
  for (const LengthLaw& length : surface.lengths) {
    const Interval tokens = length.tokens;
    table.add_row(
        {fmt::format("{:.0f} %", 100 * length.share),
         tokens.high > 1.01 * tokens.low
             ? format_count(tokens.low) + " to " + format_count(tokens.high)
             : format_count(tokens.low),
         std::to_string(length.runs),
         fmt::format("{:.3f} ± {:.3f}", length.law.a, length.law.a_error),
         fmt::format("{:.4f} ± {:.4f}", length.law.b, length.law.b_error),
         fmt::format("{:.1f} at {}", length.best.layers, format_count(length.best.params))});
  }
  session.out << "\n  The law after each training length\n"
              << session.terminal.plain(table.render(session.terminal));
}

/// a and b from all runs and from the crossings of two curves, next to the published ones.
void print_law(Session& session, const StudyFit& fit) {
  if (!fit.law && !fit.surface) return;
  const laws::LevineFit published;
  Table table({{"ln d = a + b·L"},
               {"a", Align::right},
               {"b", Align::right},
               {"chi2/dof", Align::right},
               {"from published", Align::right}});
  const auto add = [&](const std::string& title, const auto& law, const std::string& chi2) {
    table.add_row(
        {title, fmt::format("{:.3f} ± {:.3f}", law.a, law.a_error),
         fmt::format("{:.4f} ± {:.4f}", law.b, law.b_error), chi2,
         fmt::format("{:+.1f} σ, {:+.1f} σ",
                     (law.a - published.a) / std::hypot(law.a_error, published.a_error),
                     (law.b - published.b) / std::hypot(law.b_error, published.b_error))});
  };
  if (fit.surface) {
    add("all runs: L layers are best at width d", fit.surface->law, "");
    if (const auto& reading = fit.surface->transition_reading) {
      add(fmt::format("all runs: L layers beat the next shallower from d ({} pairs)",
                      reading->pairs.size()),
          reading->law, "");
    }
  }
  for (const auto& law : {fit.law, fit.law_midpoint}) {
    if (!law) continue;
    add(fmt::format("crossings of two curves, carried by the {}", to_string(law->reading)), *law,
        fmt::format("{:.2f}/{}", law->chi2, law->degrees_of_freedom));
  }
  table.add_row({laws::LevineLaw().info().title,
                 fmt::format("{:.3f} ± {:.3f}", published.a, published.a_error),
                 fmt::format("{:.4f} ± {:.4f}", published.b, published.b_error)});
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

FitOptions fit_options_of(const StudyFitOptions& options) {
  FitOptions fit = options.fit;
  fit.joint.seed = fit.seed;
  if (!options.holdout_above.empty()) {
    fit.holdout_tokens_above = parse_count(options.holdout_above, "--holdout-above");
  }
  return fit;
}

void tell_law(Session& session, const std::string& file, const std::string& source) {
  session.err << fmt::format("law written to {}; use it with 'fathom plan --law study:{}'\n", file,
                             source);
}

/// A study's folder. Its law is kept next to its runs, where `plan --law study:DIR` looks for it; a
/// law of only some of the runs is a different law and does not replace it.
StudyFit fit_folder(const StudyFitOptions& options, Session& session) {
  const study::StudyFolder folder(options.path);
  const PointSelection selection = selection_of(options);
  const std::vector<study::RunRow> rows = study::collect_rows(folder.path());
  tell_damage(session, study::damaged_records(rows));
  const auto fit = study::fit_runs(rows, selection, fit_options_of(options));
  const bool saved = selection.takes_all() && study::save_law(folder, fit);
  if (saved && options.save.empty()) tell_law(session, folder.law().string(), options.path);
  if (!fit) {
    throw DataError(fmt::format("{}: none of the requested runs has a result yet", options.path));
  }
  return *fit;
}

StudyFit fit_file(const StudyFitOptions& options) {
  return fit_study(read_run_points(options.path, selection_of(options)), fit_options_of(options));
}

void print_fit(Session& session, const StudyFit& fit) {
  session.out << fmt::format("\n  {} {}, {} to {} parameters, {:.0f} to {:.0f} layers\n", fit.runs,
                             fit.runs == 1 ? "run" : "runs", format_count(fit.params.low),
                             format_count(fit.params.high), fit.layers.low, fit.layers.high);
  if (fit.surface) print_best_depths(session, *fit.surface);
  print_transitions(session, fit);
  if (fit.surface) print_forms(session, *fit.surface);
  print_law(session, fit);
  if (fit.surface) print_lengths(session, *fit.surface);
  print_joint(session, fit);
  for (const std::string& warning : fit.warnings) session.out << "\n  ! " << warning << "\n";
  session.out << "\n  " << join(fit.answer, " ") << "\n";
}

void run_fit(const StudyFitOptions& options, Session& session) {
  const bool folder = std::filesystem::is_directory(options.path);
  const StudyFit fit = folder ? fit_folder(options, session) : fit_file(options);
  if (options.json) {
    Json document = json_document("study_fit");
    document.update(to_json(fit));
    print_json(session, document);
  } else {
    print_fit(session, fit);
  }
  if (options.save.empty()) return;
  if (write_text_output(session, options.save, study_law_text(study_law_data(fit)))) {
    tell_law(session, options.save, options.save);
  }
}

}  // namespace

void add_study_fit(CommandTree& tree, Command& study) {
  auto options = std::make_shared<StudyFitOptions>();
  Command& command = tree.add(
      study, "fit",
      {"Fit transitions and laws to finished runs",
       "Reads the run folders of a study, or a CSV with the columns id, layers, width, params, "
       "tokens, loss, seed; 'depth' and 'nonembedding_params' are understood too. Reports where "
       "deeper networks start to win at equal size, the law through those sizes, and a joint law "
       "in width, depth, parameters and tokens, each with its uncertainty. What the runs cannot "
       "determine is reported as such, not fitted. A study's own law is saved in its folder; if "
       "there is none, the warnings say why.",
       {{"study fit my-study", "the answer in plain sentences, with tables"},
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
                  "Where the joint fit switches from squared to absolute errors, in ln loss")
      ->check(Range{1e-6, 1.0});
  command
      .add_option("--starts", options->fit.joint.starts,
                  "Starting points of the joint fit (default 60)")
      ->check(Range{1, 100000});
  command
      .add_option("--replicates", options->fit.joint_replicates,
                  "Bootstrap refits of the joint law (default 200)")
      ->check(Range{0, 100000});
  command
      .add_option("--holdout-above", options->holdout_above,
                  "Count left-out runs only beyond this many tokens, e.g. 50B")
      ->type_name("TOKENS");
  command.add_option("--seed", options->fit.seed,
                     "Seed of starting points and bootstrap (default 1)");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
