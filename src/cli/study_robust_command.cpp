// fathom study robust: does the answer hold when the training changes?
#include <fmt/format.h>

#include <cmath>

#include "cli/json_output.h"
#include "cli/stop_signals.h"
#include "cli/study_commands.h"
#include "cli/study_progress.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "fits/surface_json.h"
#include "study/cost.h"
#include "study/ledger.h"
#include "study/local_executor.h"
#include "study/robust.h"
#include "study/study_rows.h"
#include "terminal/table.h"

namespace fathom {
namespace {

// An interval of ln L wider than this is uninformative.
constexpr double kTold = 4.6;

struct StudyRobustOptions {
  std::string directory, size;
  int jobs = 0;
  bool plan = false, json = false;
};

void train(Session& session, const study::RobustPlan& plan, const StudyRobustOptions& options) {
  const FileLock lock = study::lock_study(options.directory, "study robust");
  const StopSignals signals;
  StudyProgress progress(session);
  study::ExecutorEvents events = progress.events();
  events.stop = [] { return StopSignals::came(); };
  const int jobs = options.jobs > 0 ? options.jobs : study::default_jobs(plan.study.spec);
  const study::ExecutorResult result =
      study::run_local(plan.study, plan.study.all_runs(), {jobs, study::own_program()}, events);
  progress.finish();
  study::rebuild_tables(options.directory);  // back to the study's own runs
  if (result.stopped) {
    throw StoppedError(
        fmt::format("stopped; 'fathom study robust {}' continues", options.directory));
  }
  if (result.failed > 0) {
    throw DataError(fmt::format("{} of {} runs failed; 'fathom study status {}' says why",
                                result.failed, plan.study.runs.size(), options.directory));
  }
}

void print_plan(Session& session, const study::RobustPlan& plan, bool json) {
  double flops = 0;
  for (const study::PlannedRun& run : plan.study.runs) flops += run.flops;
  if (json) {
    Json document = json_document("study_robust_plan");
    document["params"] = plan.params;
    document["layers"] = plan.layers;
    document["flops"] = flops;
    document["runs"] = Json::array();
    for (const study::PlannedRun& run : plan.study.runs) {
      document["runs"].push_back({{"id", run.id},
                                  {"layers", run.spec.model.layers},
                                  {"width", run.spec.model.width},
                                  {"seed", run.spec.seed}});
    }
    return print_json(session, document);
  }
  std::string shapes;
  for (const study::GridShape& shape : plan.shapes) {
    shapes += fmt::format(" {}x{}", shape.layers, shape.width);
  }
  session.out << fmt::format(
      "  around {:.1f} layers at {} parameters:{}\n  {} runs with another rate, batch or seed, "
      "{:.2e} FLOPs\n",
      plan.layers, format_count(plan.params), shapes, plan.study.runs.size(), flops);
}

Json verdict_json(const fits::ChangeVerdict& verdict) {
  return {{"change", verdict.name},
          {"shapes", verdict.shapes},
          {"loss_change", verdict.loss_change},
          {"layers", verdict.layers},
          {"shift", verdict.shift},
          {"shift_interval", fits::interval_json(verdict.shift_interval)},
          {"verdict", name_of(verdict.holds)},
          {"reason", verdict.reason}};
}

void print_verdicts(Session& session, const study::RobustPlan& plan,
                    const fits::Robustness& robustness, bool json) {
  if (json) {
    Json document = json_document("study_robust");
    document["params"] = plan.params;
    document["layers"] = robustness.best.layers;
    document["low"] = number_or_null(robustness.best.low);
    document["high"] = number_or_null(robustness.best.high);
    document["changes"] = Json::array();
    for (const auto& change : robustness.changes) {
      document["changes"].push_back(verdict_json(change));
    }
    return print_json(session, document);
  }
  const auto bound = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.1f}", *value) : std::string("-");
  };
  session.out << fmt::format(
      "\n  The study: {:.1f} layers are best at {} parameters (95 %: {} to {})\n",
      robustness.best.layers, format_count(plan.params), bound(robustness.best.low),
      bound(robustness.best.high));
  Table table(
      {{"changed"}, {"loss", Align::right}, {"best depth", Align::right}, {"95 %"}, {"answer"}});
  for (const fits::ChangeVerdict& change : robustness.changes) {
    const Interval shift = change.shift_interval;
    const auto moved = [&](double by) { return robustness.best.layers * std::exp(by); };
    const bool told = shift.high - shift.low < kTold;
    table.add_row({change.name, fmt::format("{:+.2f} %", 100 * std::expm1(change.loss_change)),
                   told ? fmt::format("{:.1f}", change.layers) : "-",
                   told ? fmt::format("{:.1f} to {:.1f}", moved(shift.low), moved(shift.high))
                        : "not determined",
                   to_string(change.holds) + (change.reason.empty() ? "" : ": " + change.reason)});
  }
  session.out << session.terminal.plain(table.render(session.terminal));
}

void run_robust(Session& session, const StudyRobustOptions& options) {
  const study::Study study = study::open_study(options.directory);
  std::optional<double> size;
  if (!options.size.empty()) size = parse_count(options.size, "--size");
  const study::RobustPlan plan = study::plan_robust(study, study::collect_rows(study), size);
  if (options.plan) return print_plan(session, plan, options.json);
  if (!study.has_tokens) {
    throw DataError(
        fmt::format("{}: its tokens were not kept, so nothing can be trained", options.directory));
  }
  if (!options.json) print_plan(session, plan, false);
  train(session, plan, options);
  print_verdicts(session, plan, study::judge_robust(plan, study::collect_rows(study)),
                 options.json);
}

}  // namespace

void add_study_robust(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<StudyRobustOptions>();
  Command& command = tree.add(
      parent, "robust",
      {"Test whether the answer holds with another rate, batch or seed",
       "Trains the shapes around the best depth again with half and twice the learning rate, with "
       "half the batch and with a new seed, and reports whether the best depth moves by more than "
       "its interval. The runs are kept in the study's folder; its fits do not use them. A second "
       "call continues, or only evaluates what is trained. Runs on this machine, not under Slurm.",
       {{"study robust my-study --plan", "which runs, and what they cost"},
        {"study robust my-study", "train and evaluate"},
        {"study robust my-study --size 2M", "at another size"}}},
      [options](Session& session) { run_robust(session, *options); });
  command.add_option("DIR", options->directory, "The study's directory")->required();
  command
      .add_option("--size", options->size,
                  "Parameters (default: the largest size whose best depth has two bounds)")
      ->type_name("N");
  command.add_option("--jobs", options->jobs, "Models at once (default: one per core)")
      ->check(Range{1, 1024});
  command.add_flag("--plan", options->plan, "Only list the runs");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
