// fathom train: one model from a spec file, to a run directory.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/keys_table.h"
#include "cli/stop_signals.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "engine/peak.h"
#include "study/repetition.h"
#include "terminal/progress.h"
#include "terminal/table.h"
#include "train/coordinate_check.h"
#include "train/run.h"

namespace fathom {
namespace {

struct TrainOptions {
  std::string spec;
  std::vector<std::string> settings;
  std::string out;
  bool resume = false, json = false, keys = false;
  bool coordinate_check = false;
  std::string widths = "64,128,256,512", depths = "2,4,8,16,32";
  std::int64_t coordinate_steps = 10;
};

Json to_json(const train::RunRecord& record, const std::filesystem::path& directory) {
  Json document = json_document("train");
  document["directory"] = directory.string();
  Json fields = to_json(record);
  fields.erase("schema");
  document.update(fields);
  return document;
}

void print_scores(Session& session, double loss, const data::TaskScores& scores) {
  session.out << fmt::format(
      "  held-out loss {:.4f} nats, accuracy {:.2f} % by target and {:.2f} % by sequence\n  always "
      "the most common target: {:.2f} %; knowing the first token: {:.2f} %\n",
      loss, 100 * scores.accuracy, 100 * scores.sequence_accuracy, 100 * scores.majority,
      100 * scores.first_token);
  if (scores.groups.empty()) return;
  Table table({{scores.group_name, Align::right},
               {"targets", Align::right},
               {"accuracy", Align::right},
               {"sequences", Align::right},
               {"loss", Align::right}});
  for (const data::TaskScores::Group& group : scores.groups) {
    table.add_row({std::to_string(group.value), format_whole(group.targets),
                   fmt::format("{:.2f} %", 100 * group.accuracy),
                   fmt::format("{:.2f} %", 100 * group.sequence_accuracy),
                   fmt::format("{:.4f}", group.loss)});
  }
  session.out << "\n" << table.render(session.terminal);
}

void print_text(Session& session, const train::RunRecord& record,
                const std::filesystem::path& directory) {
  session.out << fmt::format("{}  {}  {}\n", session.terminal.accent("fathom train"),
                             to_string(record.status), directory.string());
  session.out << fmt::format("  {} parameters, {} steps, {} tokens in {}\n",
                             format_whole(record.parameters), format_whole(record.steps),
                             format_count(as_double(record.tokens)),
                             format_seconds(record.seconds));
  if (record.status == train::RunStatus::diverged) {
    session.out << "  the loss diverged: a smaller learning rate or more warm-up may help\n";
  } else if (record.scores) {
    print_scores(session, record.final_loss, *record.scores);
  } else if (record.status != train::RunStatus::interrupted) {
    session.out << fmt::format("  held-out loss {:.4f} nats per token, {:.4f} bits per byte\n",
                               record.final_loss, record.final_bits_per_byte);
  }
}

Json to_json(const train::CoordinateCheck& check) {
  Json document = json_document("coordinate_check");
  document["exponent_width"] = check.exponents.size_width;
  document["exponent_depth"] = check.exponents.size_depth;
  document["moved_exponent_width"] = check.exponents.moved_width;
  document["moved_exponent_depth"] = check.exponents.moved_depth;
  const auto add = [&](const char* varied, const std::vector<train::CoordinateRow>& rows) {
    for (const train::CoordinateRow& row : rows) {
      document["rows"].push_back({{"varied", varied},
                                  {"layers", row.layers},
                                  {"width", row.width},
                                  {"stream_rms", row.stream_rms},
                                  {"stream_moved", row.stream_moved}});
    }
  };
  add("width", check.by_width);
  add("layers", check.by_depth);
  return document;
}

void print_text(Session& session, const train::CoordinateCheck& check, std::int64_t steps) {
  Table table({{"L x D"},
               {"rms of the last stream, start", Align::right},
               {fmt::format("after {} steps", steps), Align::right},
               {"moved", Align::right}});
  for (const auto* rows : {&check.by_width, &check.by_depth}) {
    for (const train::CoordinateRow& row : *rows) {
      table.add_row({fmt::format("{} x {}", row.layers, row.width),
                     fmt::format("{:.4f}", row.stream_rms.front()),
                     fmt::format("{:.4f}", row.stream_rms.back()),
                     fmt::format("{:.4f}", row.stream_moved.back())});
    }
  }
  const train::CoordinateExponents& grows = check.exponents;
  session.out << session.terminal.accent("fathom train --coord-check") << "\n\n"
              << table.render(session.terminal)
              << fmt::format(
                     "\n  grows as width^{:.2f} and depth^{:.2f}, moves as width^{:.2f} and "
                     "depth^{:.2f}; 0 is flat\n",
                     grows.size_width, grows.size_depth, grows.moved_width, grows.moved_depth);
}

void run_coordinate_check(const TrainOptions& options, Session& session) {
  const train::RunSpec spec = train::read_run_spec(options.spec, options.settings);
  const train::CoordinateRequest request{parse_whole_list(options.widths, "--widths"),
                                         parse_whole_list(options.depths, "--depths"),
                                         options.coordinate_steps};
  const train::CoordinateCheck check = train::coordinate_check(spec, request);
  options.json ? print_json(session, to_json(check)) : print_text(session, check, request.steps);
}

void run_train(const TrainOptions& options, Session& session) {
  if (options.keys) return print_keys(session, train::describe_run_spec());
  if (options.spec.empty()) throw ConfigError("give a spec file; --keys lists its keys");
  if (options.coordinate_check) return run_coordinate_check(options, session);
  const train::RunSpec given = train::read_run_spec(options.spec, options.settings);
  std::optional<data::TokenSet> tokens;
  if (!given.has_task()) tokens.emplace(given.tokens);
  const train::RunSpec spec = tokens ? train::resolve(given, *tokens) : given;
  train::RunOptions run;
  run.resume = options.resume;
  run.directory = options.out.empty() ? std::filesystem::path("runs") /
                                            train::run_id(spec, tokens ? tokens->hash() : Hash128{})
                                      : std::filesystem::path(options.out);
  const bool half = spec.precision == model::Precision::bf16;
  const double peak =
      engine::measure_gemm_flops(spec.place(), half ? engine::DType::bf16 : engine::DType::f32);
  ProgressLine line(session.err, is_live_error_stream(session.err));
  run.on_step = [&](const train::RunProgress& p) {
    line.update(fmt::format("step {}/{}  loss {:.4f}  {:.0f} tokens/s  {:.0f} % of peak  {} left",
                            p.step, p.steps, p.last.loss, p.tokens_per_second,
                            100 * p.flops_per_second / peak, format_seconds(p.seconds_left)),
                as_double(p.step) / as_double(p.steps));
  };
  run.on_evaluation = [&](std::int64_t step, const train::Evaluation& evaluation) {
    line.note(fmt::format("step {}  held-out loss {:.4f}  {}", step, evaluation.loss,
                          evaluation.scores
                              ? fmt::format("{:.2f} % correct", 100 * evaluation.accuracy)
                              : fmt::format("{:.4f} bits per byte", evaluation.bits_per_byte)));
  };
  if (tokens) {
    const std::string repeated = study::repetition_note(
        spec.total_tokens(), static_cast<std::int64_t>(tokens->file(data::Split::train).size()));
    if (!repeated.empty()) session.err << "fathom: " << repeated << "\n";
  }
  run.on_note = [&](const std::string& text) { line.note("note: " + text); };
  run.stop = run.stop_in_step = [] { return StopSignals::came(); };
  const StopSignals signals;
  const train::RunRecord record =
      tokens ? train::run_training(spec, *tokens, run) : train::run_training(spec, run);
  line.clear();
  if (options.json) {
    print_json(session, to_json(record, run.directory));
  } else {
    print_text(session, record, run.directory);
  }
  if (record.status == train::RunStatus::interrupted) {
    throw StoppedError("stopped with a checkpoint; the same command with --resume continues");
  }
}

}  // namespace

void add_train_command(CommandTree& tree) {
  auto options = std::make_shared<TrainOptions>();
  Command& command = tree.add(
      tree.root(), "train",
      {"Train one model from a spec file",
       "Trains the model that a TOML file describes on a prepared corpus (fathom data prepare) or "
       "on a task whose examples are generated as needed (docs/tasks.md), and writes its resolved "
       "spec, metrics, a checkpoint and a record to a run directory. The same spec gives "
       "bit-identical results; a run stopped at any moment continues with --resume as if it had "
       "never stopped. A diverged run is a result, not an error.",
       {{"train small.toml", "train; the directory is runs/ID"},
        {"train small.toml --set model.layers=12 --set train.learning_rate=3e-4 --out runs/deep",
         "override values of the file"},
        {"train small.toml --resume", "continue after an interruption"},
        {"train --keys", "the keys of a spec file"},
        {"train small.toml --coord-check",
         "do activations keep their size as width and depth grow?"}}},
      [options](Session& session) { run_train(*options, session); });
  command.add_option("SPEC", options->spec, "TOML file with [data], [model] and [train]");
  command.add_flag("--keys", options->keys, "List every key of a spec file and what it means");
  command.add_option("--set", options->settings, "Override one value: table.key=value")
      ->type_name("KEY=VALUE");
  command.add_option("--out", options->out, "Run directory (default runs/ID)")->type_name("DIR");
  command.add_flag("--resume", options->resume, "Continue from the checkpoint");
  command.add_flag("--coord-check", options->coordinate_check,
                   "Show activation sizes against width and depth instead of training");
  command.add_option("--widths", options->widths, "Widths for --coord-check")->type_name("D,D");
  command.add_option("--depths", options->depths, "Depths for --coord-check")->type_name("L,L");
  command
      .add_option("--coord-steps", options->coordinate_steps,
                  "Steps for --coord-check (default 10)")
      ->check(Range{1, 1000})
      ->type_name("N");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
