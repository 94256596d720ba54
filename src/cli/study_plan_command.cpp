// fathom study plan: what a study would train, what it costs, and how long this machine takes.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "cli/json_output.h"
#include "cli/study_commands.h"
#include "core/memory.h"
#include "core/units.h"
#include "data/token_set.h"
#include "engine/device.h"
#include "study/planned_run.h"
#include "study/speed.h"
#include "terminal/table.h"

namespace fathom {
namespace {

struct Options {
  std::string spec;
  StudySource source;
  int jobs = 0;
  bool no_timing = false, json = false;
};

struct Plan {
  study::StudySpec spec;
  std::vector<study::PlannedRun> runs;
  study::SpeedModel speed;
  int jobs = 1;
  double flops = 0, tokens = 0, seconds = NAN;
};

/// The tokens of a study directory, when they are prepared.
std::optional<study::TokenFacts> prepared_tokens(const std::string& directory) {
  const auto folder = std::filesystem::path(directory) / "tokens";
  if (directory.empty() || !std::filesystem::exists(folder / "corpus.json")) return {};
  const data::TokenSet tokens(folder);
  return study::TokenFacts{tokens.hash(),
                           static_cast<std::int64_t>(tokens.tokenizer().vocabulary())};
}

Plan make_plan(const Options& options) {
  Plan plan;
  plan.spec = options.source.read(options.spec);
  plan.runs = study::plan_runs(plan.spec, prepared_tokens(options.spec));
  plan.jobs = options.jobs > 0 ? options.jobs : default_jobs(plan.spec);
  for (const study::PlannedRun& run : plan.runs) {
    const double fresh =
        1 - static_cast<double>(run.shared_steps) / static_cast<double>(run.spec.schedule.steps);
    plan.flops += run.flops * fresh;
    plan.tokens += run.tokens * fresh;
  }
  const bool here = plan.spec.device == "cpu" || engine::find_cuda_device();
  if (!options.no_timing && here) {
    constexpr double kTimingSeconds = 5;
    plan.speed = study::measure_speed(plan.runs, plan.jobs, kTimingSeconds);
    plan.seconds = study::study_seconds(plan.runs, plan.speed, plan.jobs);
  }
  return plan;
}

void print_rows(Session& session, const Plan& plan) {
  Json document = json_document("study_plan");
  document["title"] = plan.spec.title;
  document["device"] = plan.spec.device;
  document["jobs"] = plan.jobs;
  document["flops"] = plan.flops;
  document["tokens"] = plan.tokens;
  document["seconds"] = number_or_null(plan.seconds);
  document["left_out"] = plan.spec.grid.left_out;
  document["runs"] = Json::array();
  for (const study::PlannedRun& run : plan.runs) {
    const model::ModelSpec& m = run.spec.model;
    document["runs"].push_back({{"id", run.id.empty() ? Json(nullptr) : Json(run.id)},
                                {"layers", m.layers},
                                {"width", m.width},
                                {"heads", m.heads},
                                {"params", whole_number(run.parameters)},
                                {"total_params", whole_number(run.total_parameters)},
                                {"tokens", whole_number(run.tokens)},
                                {"steps", run.spec.schedule.steps},
                                {"shared_steps", run.shared_steps},
                                {"seed", run.spec.seed},
                                {"flops", run.flops},
                                {"memory_bytes", whole_number(run.memory_bytes)},
                                {"seconds", number_or_null(plan.speed.seconds(run))}});
  }
  print_json(session, document);
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
  double memory = 0;
  for (const study::PlannedRun& run : plan.runs) {
    const model::ModelSpec& m = run.spec.model;
    const double seconds = plan.speed.seconds(run);
    memory = std::max(memory, run.memory_bytes);
    table.add_row(
        {run.id.empty() ? "-" : run.id, fmt::format("{} x {}", m.layers, m.width),
         std::to_string(m.heads), format_count(run.parameters), format_count(run.total_parameters),
         format_count(run.tokens), fmt::format("{:.0f}", run.tokens / run.parameters),
         std::to_string(run.spec.seed), fmt::format("{:.2e}", run.flops),
         format_bytes(run.memory_bytes), std::isfinite(seconds) ? format_seconds(seconds) : "-"});
  }
  session.out << table.render(terminal);
  for (const std::string& rung : plan.spec.grid.left_out) {
    session.out << "  left out: " << rung << "\n";
  }
  session.out << fmt::format("\n  {} runs, {} tokens, {:.2e} FLOPs; {} at once on {}\n",
                             plan.runs.size(), format_count(plan.tokens), plan.flops, plan.jobs,
                             plan.spec.device);
  if (std::isfinite(plan.seconds)) {
    session.out << fmt::format(
        "  about {} of training here (extrapolated from steps timed for {})\n",
        format_seconds(plan.seconds), format_seconds(plan.speed.measured_seconds));
  } else {
    session.out << "  no time estimate: nothing was timed, for there is no such device here\n";
  }
  if (plan.spec.device == "cpu" && memory * plan.jobs > usable_memory_bytes()) {
    session.out << fmt::format(
        "  the largest models need {} at {} at once: more than this machine "
        "has; --jobs 1 lowers it\n",
        format_bytes(memory * plan.jobs), plan.jobs);
  }
}

}  // namespace

void add_study_plan(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<Options>();
  Command& command = tree.add(
      parent, "plan",
      {"What a study would train, and how long it takes here",
       "Lists the runs with parameters (N: without embeddings), tokens, FLOPs and memory, and "
       "times a few steps to estimate the whole. Nothing is written. Run ids are known once "
       "the tokens are prepared: give a study directory to see them.",
       {{"study plan --preset quick", "the smallest study"},
        {"study plan mine.toml --set budget.tokens=5M", "with another budget"},
        {"study plan my-study", "a study that was begun"}}},
      [options](Session& session) {
        const Plan plan = make_plan(*options);
        options->json ? print_rows(session, plan) : print_text(session, plan);
      });
  command.add_option("SPEC", options->spec, "TOML file or study directory");
  options->source.add_options(tree, command);
  command.add_option("--jobs", options->jobs, "Models at once (default: one a core)")
      ->check(Range{1, 1024});
  command.add_flag("--no-timing", options->no_timing, "Time no steps, give no estimate");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
