// fathom probe: what a trained model does with its depth.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/probe_comparison_text.h"
#include "cli/probe_text.h"
#include "cli/stop_signals.h"
#include "core/error.h"
#include "core/threads.h"
#include "core/units.h"
#include "engine/cuda/module.h"
#include "engine/device.h"
#include "pretrained/device_model.h"
#include "probe/comparison.h"
#include "probe/drop.h"
#include "probe/own_run.h"
#include "probe/probe.h"
#include "probe/result_json.h"
#include "probe/verdict.h"
#include "report/render_report.h"
#include "serve/probe_shelf.h"
#include "shape/hardware.h"
#include "terminal/progress.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

struct ProbeRequest {
  std::string model, text = "sotu", ids, targets, tokens, window, hardware = kDefaultHardware;
  std::string drop, write, report, device = "cpu";
  std::vector<std::string> compare;
  double seconds = 600;
  std::string memory = "16GB";
  int threads = 0;
  bool quick = false, json = false;
};

constexpr std::int64_t kProbeTokens = 65536, kProbeWindow = 512;

std::string name_of_model(const fs::path& path) {
  std::string name = path.filename().string();
  return name.empty() ? path.parent_path().filename().string() : name;
}

probe::ProbeText read_probe_windows(const pretrained::Weights& weights, const ProbeRequest& o) {
  probe::TextRequest request;
  request.text = o.text;
  request.ids = o.ids;
  request.targets = o.targets;
  request.task = probe::task_of(weights.layout());
  request.most_tokens = o.tokens.empty() ? kProbeTokens : parse_whole(o.tokens, "--tokens");
  const std::int64_t context = weights.layout().context;
  request.window =
      o.window.empty() ? std::min(kProbeWindow, context) : parse_whole(o.window, "--window");
  if (request.window < 2 || request.window > context) {
    throw ConfigError(fmt::format("--window {} is outside 2 to {}, the model's context",
                                  request.window, context));
  }
  if (o.ids.empty() && !o.targets.empty()) throw ConfigError("--targets needs --ids");
  return probe::read_probe_text(request, weights.tokenizer(), weights.tokenizer_note());
}

unsigned probe_threads(const ProbeRequest& o) {
  return threads_or_all(static_cast<unsigned>(o.threads));
}

/// Null where the CPU is to be used.
std::unique_ptr<pretrained::DeviceModel> device_of(pretrained::Weights& weights,
                                                   const ProbeRequest& o) {
  if (o.device != "cuda") return nullptr;
  return std::make_unique<pretrained::DeviceModel>(
      weights, engine::cuda_module().make_inference(engine::cuda_options()));
}

probe::ProbeResult run_whole_probe(Session& session, pretrained::Weights& weights,
                                   const probe::ProbeText& text, const ProbeRequest& o) {
  const auto device = device_of(weights, o);
  probe::ProbeOptions options;
  options.threads = probe_threads(o);
  options.device = device.get();
  options.seconds = o.seconds;
  options.fixed_tokens = !o.tokens.empty() || !o.ids.empty();
  options.hardware = o.hardware;
  options.heads = options.curves = options.lens = !o.quick;
  const StopSignals signals;
  options.stop = [] { return StopSignals::came(); };
  ProgressLine line(session.err, is_live_error_stream(session.err));
  options.progress = [&](const std::string& what, double share) { line.update(what, share); };
  return probe::probe_model(weights, text, name_of_model(o.model), options);
}

/// The loss without the layers, and the folder without them.
void run_drop(Session& session, pretrained::Weights& weights, const probe::ProbeText& text,
              const ProbeRequest& o) {
  const std::vector<std::int64_t> dropped = probe::parse_layers(o.drop, weights.layout().depth());
  const auto device = device_of(weights, o);
  probe::SweepControl control;
  control.threads = probe_threads(o);
  control.device = device.get();
  probe::Sweep sweep(weights, control);
  const std::span<const probe::Window> windows(text.windows);
  const probe::DropCost cost = probe::measure_drop(sweep, windows, dropped);
  std::optional<double> reloaded;
  if (!o.write.empty()) {
    probe::write_pruned(o.model, dropped, o.write);
    pretrained::Weights written(pretrained::open_checkpoint(o.write),
                                static_cast<std::uint64_t>(parse_bytes(o.memory, "--memory")));
    const auto written_device = device_of(written, o);
    control.device = written_device.get();
    probe::Sweep again(written, control);
    reloaded = probe::measure_drop(again, windows, {0}).before.mean;
  }
  if (o.json) {
    Json document = json_document("probe_drop");
    document["dropped"] = dropped;
    document["loss"] = cost.before.mean;
    document["loss_without"] = cost.after.mean;
    document["cost"] = cost.cost.mean;
    document["cost_error"] = number_or_null(cost.cost.error);
    document["folder"] = o.write.empty() ? Json() : Json(o.write);
    document["reloaded_loss"] = number_or_null(reloaded);
    print_json(session, document);
    return;
  }
  const double half = (cost.cost.high - cost.cost.low) / 2;
  session.out << session.terminal.plain(fmt::format(
      "without {}: {:.4f} nats per token, {:.4f} with all; cost {:.4f}{} on this text\n",
      probe::layers_text(dropped), cost.after.mean, cost.before.mean, cost.cost.mean,
      std::isnan(half) ? " (one window: no interval)" : fmt::format(" ± {:.4f}", half)));
  if (reloaded) {
    session.out << fmt::format("wrote {}; read back, it has {:.4f} nats per token\n", o.write,
                               *reloaded);
  }
}

pretrained::Weights open_weights(const ProbeRequest& o) {
  return {probe::open_model(o.model),
          static_cast<std::uint64_t>(parse_bytes(o.memory, "--memory"))};
}

Json probe_document(const probe::ProbeResult& result) {
  Json document = json_document("probe");
  probe::write_result(result, document);
  return document;
}

void write_probe_page(const std::string& file, Json document, const std::string& title) {
  document["title"] = title;
  report::write_probe(file, document);
}

/// A model, measured now, or what an earlier probe wrote.
Json measured_or_read(Session& session, const std::string& name, const ProbeRequest& o) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored) && serve::holds_probe(name)) {
    return serve::read_probe(name);
  }
  ProbeRequest own = o;
  own.model = name;
  pretrained::Weights weights = open_weights(own);
  const probe::ProbeText text = read_probe_windows(weights, own);
  return probe_document(run_whole_probe(session, weights, text, own));
}

void run_comparison(Session& session, ProbeRequest o) {
  if (!o.drop.empty()) throw ConfigError("--compare measures whole models; leave --drop out");
  if (!o.model.empty()) o.text = o.model;  // the only word besides the two models
  const Json a = measured_or_read(session, o.compare[0], o);
  const Json b = measured_or_read(session, o.compare[1], o);
  Json document = json_document("probe_compare");
  probe::write_comparison(a, b, document);
  if (!o.report.empty()) write_probe_page(o.report, document, "Two probes");
  if (o.json) return print_json(session, document);
  session.out << render_comparison(document, session.terminal);
  if (!o.report.empty()) session.out << fmt::format("\n  page: {}\n", o.report);
}

void run_probe(Session& session, const ProbeRequest& o) {
  if (!o.compare.empty()) return run_comparison(session, o);
  if (o.model.empty()) throw ConfigError("give a MODEL, or two with --compare");
  if (!o.write.empty() && o.drop.empty()) throw ConfigError("--write needs --drop");
  pretrained::Weights weights = open_weights(o);
  ProbeRequest read = o;
  // Enough for an interval; the full probe decides for itself.
  if (!o.drop.empty() && o.tokens.empty()) read.tokens = "16384";
  const probe::ProbeText text = read_probe_windows(weights, read);
  if (!o.drop.empty()) return run_drop(session, weights, text, o);
  const probe::ProbeResult result = run_whole_probe(session, weights, text, o);
  const Json document = probe_document(result);
  if (!o.report.empty()) write_probe_page(o.report, document, "Probe of " + result.model.name);
  if (o.json) return print_json(session, document);
  session.out << render_probe(result, session.terminal);
  if (!o.report.empty()) session.out << fmt::format("\n  page: {}\n", o.report);
}

void add_probe_options(CommandTree& tree, Command& command, ProbeRequest& o) {
  command.add_option("MODEL", o.model, "A Hugging Face folder, .gguf, llama2.c .bin or run");
  command.add_option("TEXT", o.text,
                     "A text, a folder of texts, a prepared or named corpus (default sotu)");
  command.add_option("--ids", o.ids, "Token ids instead of a text: one window per line")
      ->type_name("FILE");
  command
      .add_option("--targets", o.targets,
                  "Target token for each position of --ids; -1: not counted")
      ->type_name("FILE");
  command
      .add_option("--tokens", o.tokens,
                  "Measure this many tokens (default: until costs are settled, at most 65,536)")
      ->type_name("N");
  command.add_option("--window", o.window, "Tokens per window (default 512, or the context)")
      ->type_name("N");
  command
      .add_option("--time", o.seconds, "Stop before a round that would run past this (default 600)")
      ->type_name("SECONDS")
      ->check(Range{0, 1e7});
  command.add_option("--memory", o.memory, "Memory for layers kept loaded (default 16GB)")
      ->type_name("BYTES");
  command.add_flag("--quick", o.quick, "Layers only: no curves, heads or logit lens");
  command.add_option("--report", o.report, "Also write one HTML page")->type_name("FILE");
  command.add_option("--drop", o.drop, "Only measure the model without these layers: 9,10 or 3-5")
      ->type_name("LAYERS");
  command
      .add_option("--write", o.write,
                  "With --drop: write the smaller model as a Hugging Face folder")
      ->type_name("FOLDER");
  command
      .add_option("--compare", o.compare,
                  "Two models, or JSON or pages of earlier probes, side by side")
      ->type_name("A B")
      ->expected(2, 2);
  command
      .add_option("--hardware", o.hardware, "Hardware for modelled decoding times (default h200)")
      ->type_name("NAME");
  tree.restrict(command.add_option("--device", o.device, "Where the model runs (default cpu)")
                    ->type_name("NAME"),
                {"cpu", "cuda"});
  command.add_option("--threads", o.threads, "Threads (default: all cores)")
      ->type_name("N")
      ->check(Range{0, 1024});
  command.add_flag("--json", o.json, "Print JSON");
}

}  // namespace

void add_probe_command(CommandTree& tree) {
  auto options = std::make_shared<ProbeRequest>();
  Command& command = tree.add(
      tree.root(), "probe",
      {"What a trained model does with its depth",
       "Measures on a text what removing each layer, its attention or its feed-forward would cost "
       "in nats per token, with intervals, and how much each layer changes the residual stream; "
       "what cutting several costs; what the heads do; and how the shape compares with the laws. "
       "Reads Hugging Face folders, GGUF and llama2.c files and Fathom's own runs.",
       {{"probe ./tinyllama.gguf", "on the default corpus, until the costs are settled"},
        {"probe runs/small notes.txt --tokens 16K", "your own run on your own text"},
        {"probe ./model --report page.html", "one page with everything"},
        {"probe ./model --drop 9,10 --write PRUNED", "a folder without two layers, and its loss"},
        {"probe ./model --ids ids.txt --targets answers.txt --json", "token ids and targets"},
        {"probe --compare ./model PRUNED notes.txt", "two models side by side on one text"},
        {"probe --compare monday.json today.json --report page.html", "two earlier probes"}}},
      [options](Session& session) { run_probe(session, *options); });
  add_probe_options(tree, command, *options);
}

}  // namespace fathom
