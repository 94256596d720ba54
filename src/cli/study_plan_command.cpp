// fathom study plan: what a study would train, what it costs, and how long this machine takes.
#include <fmt/format.h>

#include <cmath>

#include "cli/json_output.h"
#include "cli/study_commands.h"
#include "cli/study_end.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "study/cost.h"
#include "study/design_forecast.h"
#include "study/design_text.h"
#include "study/study_rows.h"
#include "terminal/table.h"

namespace fathom {
namespace {

struct StudyPlanOptions {
  std::string spec;
  StudySource source;
  int jobs = 0;
  bool no_timing = false, json = false;
};

struct Plan {
  study::StudySpec spec;
  std::optional<study::TokenFacts> tokens;  // once they are prepared
  std::vector<study::PlannedRun> runs;
  study::StudyCost cost;
  std::optional<study::DesignProgress> design;
  std::optional<study::DesignForecast> forecast;  // of a design that has not begun
};

/// All rounds as forecast, or what is left of a design that has begun.
void plan_design(const StudyPlanOptions& options, Plan& plan) {
  const study::StudyFolder folder(options.spec);
  study::Study study{.folder = folder, .spec = plan.spec, .runs = {}};
  study::plan_again(study);
  const auto tokens = study::read_token_facts(folder);
  study::DesignLog timed = study::new_design_log(plan.spec);
  const int jobs = options.jobs > 0 ? options.jobs : study::default_jobs(plan.spec);
  if (!options.no_timing) study::time_design(plan.spec, tokens, jobs, timed);
  if (!study::read_design_log(folder)) {
    const bool seconds = plan.spec.design->unit == study::CostUnit::seconds;
    if (seconds && timed.speed.points.empty()) {
      throw ConfigError("design: a cost in seconds cannot be planned without timing steps");
    }
    plan.forecast =
        study::foretell_design(plan.spec, study::design_spec(plan.spec, tokens, &timed));
    plan.runs = study::plan_runs(plan.spec, plan.forecast->rounds.front().runs, tokens);
  } else {
    plan.runs = study.runs;
  }
  plan.design = study::look_at_design(study, study::collect_rows(study), &timed);
  plan.cost = study::estimate_cost(plan.spec, plan.runs, jobs, false);
  if (timed.speed.points.empty()) return;
  plan.cost.speed = timed.speed;
  plan.cost.seconds = study::study_seconds(plan.runs, timed.speed, jobs);
}

Plan make_plan(const StudyPlanOptions& options) {
  Plan plan;
  plan.spec = options.source.read(options.spec);
  plan.tokens = study::read_token_facts(study::StudyFolder(options.spec));
  if (plan.spec.design) {
    plan_design(options, plan);
    return plan;
  }
  plan.runs = study::plan_runs(plan.spec, plan.tokens);
  plan.cost = study::estimate_cost(plan.spec, plan.runs, options.jobs, !options.no_timing);
  return plan;
}

Json forecast_json(const study::DesignForecast& forecast) {
  Json json{{"end", name_of(forecast.end.stage)}, {"cost", forecast.end.spent}};
  json["rounds"] = Json::array();
  for (const study::DesignRound& round : forecast.rounds) {
    json["rounds"].push_back({{"runs", round.runs.size()}, {"cost", round.cost}});
  }
  return json;
}

/// The rounds after the first, as they would come if depth paid as published.
void print_design(Session& session, const Plan& plan) {
  const study::DesignRules& rules = *plan.spec.design;
  session.out << "\n";
  for (const std::string& line : study::design_lines(*plan.design, rules)) {
    session.out << "  " << line << "\n";
  }
  if (!plan.forecast) return;
  std::size_t runs = 0;
  for (const study::DesignRound& round : plan.forecast->rounds) runs += round.runs.size();
  session.out << fmt::format(
      "  forecast, if depth pays as published and seeds scatter by 0.2 %: {} rounds, {} "
      "trajectories, {} of {}; then: {}\n",
      plan.forecast->rounds.size(), runs, study::cost_text(plan.forecast->end.spent, rules.unit),
      study::cost_text(rules.budget, rules.unit), name_of(plan.forecast->end.stage));
  for (const fits::GoalState& goal : plan.forecast->end.goals) {
    session.out << "    " << study::goal_text(goal) << "\n";
  }
}

void print_rows(Session& session, const Plan& plan) {
  Json document = json_document("study_plan");
  document["title"] = plan.spec.title;
  document["device"] = name_of(plan.spec.device);
  document["jobs"] = plan.cost.jobs;
  document["flops"] = plan.cost.flops;
  document["tokens"] = plan.cost.tokens;
  document["seconds"] = number_or_null(plan.cost.seconds);
  document["left_out"] = plan.spec.grid.left_out;
  if (plan.design) document["design"] = study::design_json(*plan.design, *plan.spec.design);
  if (plan.forecast) document["design"]["foretold"] = forecast_json(*plan.forecast);
  document["runs"] = Json::array();
  for (const study::PlannedRun& run : plan.runs) {
    const model::ModelSpec& m = run.spec.model;
    document["runs"].push_back({{"id", run.id.empty() ? Json(nullptr) : Json(run.id)},
                                {"layers", m.layers},
                                {"width", m.width},
                                {"heads", m.heads},
                                {"params", run.parameters},
                                {"total_params", run.total_parameters},
                                {"tokens", run.tokens},
                                {"steps", run.spec.schedule.steps},
                                {"shared_steps", run.shared_steps},
                                {"seed", run.spec.seed},
                                {"flops", run.flops},
                                {"memory_bytes", whole_number(run.memory_bytes)},
                                {"seconds", number_or_null(plan.cost.speed.seconds(run))}});
  }
  print_json(session, document);
}

void print_cost(Session& session, const Plan& plan) {
  const study::StudyCost& cost = plan.cost;
  session.out << fmt::format("\n  {} runs, {} tokens, {:.2e} FLOPs; {} at once on {}\n",
                             plan.runs.size(), format_count(cost.tokens), cost.flops, cost.jobs,
                             name_of(plan.spec.device));
  if (std::isfinite(cost.seconds)) {
    session.out << fmt::format(
        "  about {} of training here (extrapolated from steps timed for {})\n",
        format_seconds(cost.seconds), format_seconds(cost.speed.measured_seconds));
  } else {
    session.out << "  no time estimate: nothing was timed\n";
  }
  if (cost.exceeds_memory) {
    session.out << fmt::format(
        "  the largest models need {} at {} at once: more than this machine "
        "has; --jobs 1 lowers it\n",
        format_bytes(cost.memory_bytes * cost.jobs), cost.jobs);
  }
}

void print_text(Session& session, const Plan& plan) {
  const Terminal& terminal = session.terminal;
  session.out << terminal.plain(
      fmt::format("{}  {}\n\n", terminal.accent("fathom study plan"), plan.spec.title));
  Table table({{"run"},
               {"L x D", Align::right},
               {"heads", Align::right},
               {"N", Align::right},
               {"with embedding", Align::right},
               {"tokens", Align::right},
               {"per N", Align::right},
               {"seed", Align::right},
               {"FLOPs", Align::right},
               {"memory", Align::right},
               {"time", Align::right}});
  for (const study::PlannedRun& run : plan.runs) {
    const model::ModelSpec& m = run.spec.model;
    const double seconds = plan.cost.speed.seconds(run);
    const double tokens = as_double(run.tokens), parameters = as_double(run.parameters);
    table.add_row({run.id.empty() ? "-" : run.id, fmt::format("{} x {}", m.layers, m.width),
                   std::to_string(m.heads), format_count(parameters),
                   format_count(as_double(run.total_parameters)), format_count(tokens),
                   fmt::format("{:.0f}", tokens / parameters), std::to_string(run.spec.seed),
                   fmt::format("{:.2e}", run.flops), format_bytes(run.memory_bytes),
                   std::isfinite(seconds) ? format_seconds(seconds) : "-"});
  }
  session.out << table.render(terminal);
  for (const std::string& rung : plan.spec.grid.left_out) {
    session.out << "  left out: " << rung << "\n";
  }
  print_cost(session, plan);
  const std::string repeated = longest_repetition(plan.runs, plan.tokens);
  if (!repeated.empty()) session.out << "  " << repeated << "\n";
  if (plan.design) print_design(session, plan);
}

}  // namespace

void add_study_plan(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<StudyPlanOptions>();
  Command& command =
      tree.add(parent, "plan",
               {"What a study would train, and how long it takes here",
                "Lists the runs with parameters (N: without embeddings), tokens, FLOPs and memory, "
                "and times a few steps to estimate the total time. For a [design] it lists the "
                "first round and forecasts the others. Nothing is written. Run ids are known once "
                "the tokens are prepared: give a study directory to see them.",
                {{"study plan --preset quick", "the smallest study"},
                 {"study plan mine.toml --set budget.tokens=5M", "with another budget"},
                 {"study plan my-study", "a study already under way"}}},
               [options](Session& session) {
                 const Plan plan = make_plan(*options);
                 options->json ? print_rows(session, plan) : print_text(session, plan);
               });
  command.add_option("SPEC", options->spec, "TOML file or study directory");
  options->source.add_options(tree, command);
  command.add_option("--jobs", options->jobs, "Models at once (default: one per core)")
      ->check(Range{1, 1024});
  command.add_flag("--no-timing", options->no_timing, "Do not time steps; give no time estimate");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
