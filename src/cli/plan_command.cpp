// fathom plan: from a budget to a shape with its evidence.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/given_options.h"
#include "cli/open_page.h"
#include "cli/parse.h"
#include "cli/plan_report.h"
#include "cli/plan_words.h"
#include "cli/text_output.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/units.h"
#include "planner/planner.h"
#include "planner/run_spec.h"
#include "report/map_document.h"
#include "report/render_report.h"
#include "shape/emit_config.h"

namespace fathom {
namespace {

using namespace planner;

/// Not a format of another tool: a run spec of Fathom's own.
constexpr const char* kEmitFathom = "fathom";

std::vector<std::string> emit_names() {
  std::vector<std::string> names{kEmitFathom};
  for (const std::string& name : list_names<ConfigFormat>()) names.push_back(name);
  return names;
}

/// Values as typed; make_request turns them into a PlanRequest.
struct PlanOptions {
  std::string size, flops, tokens, tokens_per_parameter, tolerance, vocab, context, step_tokens;
  std::string law = laws::Consensus::kName, objective = name_of(Objective::loss);
  std::string hardware = kDefaultHardware, style, emit, output, html;
  std::vector<std::string> overlays;
  double levine_correlation = 0, ffn_ratio = 0;
  std::int64_t max_depth = 0, width_multiple = 0, head_size = 0, kv_group = 1;
  std::int64_t kv_heads = 0, tensor_parallel = 1, pipeline_parallel = 1;
  std::int64_t gpus = 0, zero = 0, micro_batch = 1;
  bool total = false, untied = false, json = false, long_view = false, recompute = false;
  bool open = false;
};

PlanRequest make_request(const PlanOptions& options) {
  PlanRequest request;
  if (!options.size.empty()) request.parameters = parse_count(options.size, "SIZE");
  if (!options.flops.empty()) request.flops = parse_count(options.flops, "--flops");
  if (!options.tokens.empty()) request.tokens = parse_count(options.tokens, "--tokens");
  if (!options.tokens_per_parameter.empty()) {
    if (request.tokens) throw ConfigError("give --tokens or --tokens-per-parameter, not both");
    request.tokens_per_parameter =
        parse_count(options.tokens_per_parameter, "--tokens-per-parameter");
  }
  request.count_embeddings = options.total;
  request.law = options.law;
  request.levine_correlation = options.levine_correlation;
  request.objective = parse_enum<Objective>(options.objective, "--objective");
  request.hardware = options.hardware;
  if (!options.tolerance.empty()) {
    request.tolerance = parse_fraction(options.tolerance, "--tolerance");
  }
  if (!options.step_tokens.empty()) {
    request.step_tokens = parse_whole(options.step_tokens, "--step-tokens");
  }
  // A config format brings its own style.
  request.base.gated = !options.emit.empty() && options.emit != kEmitFathom && options.style.empty()
                           ? wants_gated(parse_enum<ConfigFormat>(options.emit, "--emit"))
                           : options.style != "gpt2";
  // nanoGPT has no option for the feed-forward.
  if (options.emit == name_of(ConfigFormat::nanogpt) && options.ffn_ratio == 0) {
    request.base.ffn_ratio = 4;
  }
  request.base.tied = !options.untied;
  request.base.kv_group = options.kv_group;
  request.base.kv_heads = options.kv_heads;
  if (options.kv_heads > 0 && options.kv_group > 1) {
    throw ConfigError("give --kv-heads or --kv-group, not both");
  }
  request.gpus = options.gpus;
  request.zero = options.zero;
  request.micro_batch = options.micro_batch;
  request.recompute = options.recompute;
  if (options.ffn_ratio != 0) request.base.ffn_ratio = options.ffn_ratio;
  if (!options.vocab.empty()) request.base.vocab = parse_whole(options.vocab, "--vocab");
  if (!options.context.empty()) request.base.context = parse_whole(options.context, "--context");
  request.rules = {options.width_multiple, options.head_size, options.max_depth,
                   options.tensor_parallel, options.pipeline_parallel};
  return request;
}

std::string extra_options(PlanOptions given);

void write_map_page(Session& session, const PlanOptions& options) {
  if (!options.emit.empty()) throw ConfigError("give --html or --emit, not both");
  if (!options.output.empty())
    throw ConfigError("--html names the page itself; leave out --output");
  const report::MapRequest request{.plan = make_request(options),
                                   .overlays = {options.overlays.begin(), options.overlays.end()},
                                   .options = extra_options(options)};
  write_page(session, "plan_map", {options.html, options.open, options.json},
             report::render_map(report::make_map_document(request)));
}

void run(Session& session, const PlanOptions& options) {
  if (!options.html.empty()) return write_map_page(session, options);
  if (!options.overlays.empty()) throw ConfigError("--overlay goes with --html");
  if (options.open) throw ConfigError("--open goes with --html");
  const Plan plan = make_plan(make_request(options));
  if (!options.emit.empty()) {
    const std::string config =
        options.emit == kEmitFathom
            ? run_spec_text(plan)
            : emit_config(plan.recommendation.shape,
                          parse_enum<ConfigFormat>(options.emit, "--emit"),
                          {options.tensor_parallel, options.pipeline_parallel});
    if (write_text_output(session, options.output, config)) {
      session.err << "wrote " << options.output << "\n";
    }
    return;
  }
  if (!options.output.empty()) throw ConfigError("--output goes with --emit");
  if (options.json) return print_plan_json(session, plan);
  options.long_view ? print_plan_text(session, plan) : print_plan_verdict(session, plan);
}

std::vector<std::string> law_names() {
  std::vector<std::string> names{laws::Consensus::kName};
  for (const laws::LawPointer& law : laws::published_laws()) names.push_back(law->info().name);
  return names;
}

void add_budget_options(Command& command, PlanOptions& o) {
  command.add_option("SIZE", o.size,
                     "Parameters to spend: 350M, 1.3B, 1e12 (embeddings not counted)");
  command.add_option("--flops", o.flops, "Training FLOPs to spend instead of a size")
      ->type_name("C");
  command.add_flag("--total", o.total, "SIZE counts embeddings too");
  command
      .add_option("--tokens", o.tokens,
                  fmt::format("Training tokens (default {:g} per parameter)", kTokensPerParameter))
      ->type_name("T");
  command
      .add_option("--tokens-per-parameter", o.tokens_per_parameter, "Training tokens per parameter")
      ->type_name("R");
}

void add_law_options(CommandTree& tree, Command& command, PlanOptions& o) {
  command
      .add_option("--law", o.law,
                  "Law to plan with: " + fmt::format("{}", fmt::join(law_names(), ", ")) +
                      ", aspect:R, or study:PATH (a law file); default consensus, all measured "
                      "laws, each weighted by how close its data are")
      ->type_name("LAW")
      ->suggest(law_names());
  tree.restrict(
      command.add_option("--objective", o.objective, "What to optimise")->type_name("GOAL"),
      list_names<Objective>());
  command
      .add_option("--hardware", o.hardware,
                  "Profile for times: " + fmt::format("{}", fmt::join(hardware_names(), ", ")) +
                      " or a .toml file")
      ->type_name("HW")
      ->suggest(hardware_names());
  command
      .add_option("--tolerance", o.tolerance,
                  fmt::format("Loss increase that the band allows (default {:g}%)",
                              100 * kDefaultTolerance))
      ->type_name("SHARE");
  command
      .add_option("--levine-correlation", o.levine_correlation,
                  "Correlation of a and b in Levine's fit, unpublished (default 0)")
      ->type_name("R");
  command
      .add_option("--step-tokens", o.step_tokens,
                  fmt::format("Tokens per step and device in the time model (default {})",
                              kDefaultStepTokens))
      ->type_name("N");
}

void add_shape_options(CommandTree& tree, Command& command, PlanOptions& o) {
  const char* group = "Shape and constraints";
  tree.restrict(
      command.add_option("--style", o.style, "Block style (default llama: gated, RMSNorm)")
          ->type_name("STYLE")
          ->group(group),
      {"llama", "gpt2"});
  command.add_option("--vocab", o.vocab, fmt::format("Vocabulary (default {})", kDefaultVocab))
      ->type_name("V")
      ->group(group);
  command
      .add_option("--context", o.context,
                  fmt::format("Context length (default {})", kDefaultContext))
      ->type_name("T")
      ->group(group);
  command.add_flag("--untied", o.untied, "Separate output matrix")->group(group);
  command.add_option("--kv-group", o.kv_group, "Query heads per kv head (default 1)")
      ->type_name("N")
      ->positive()
      ->group(group);
  command.add_option("--kv-heads", o.kv_heads, "Key-value heads, instead of --kv-group")
      ->type_name("G")
      ->positive()
      ->group(group);
  command.add_option("--ffn-ratio", o.ffn_ratio, "Feed-forward over width (default 4, gated 8/3)")
      ->type_name("X")
      ->check({0.01, 1000})
      ->group(group);
  command.add_option("--max-depth", o.max_depth, "At most this many layers")
      ->type_name("L")
      ->positive()
      ->group(group);
  command
      .add_option("--width-multiple", o.width_multiple,
                  "Width divisible by this (default 128, 64 when narrow)")
      ->type_name("N")
      ->positive()
      ->group(group);
  command
      .add_option("--head-size", o.head_size,
                  fmt::format("Head size (default 64, 128 from width {} on)", kLargeHeadWidth))
      ->type_name("K")
      ->positive()
      ->group(group);
  command
      .add_option("--tensor-parallel", o.tensor_parallel,
                  "GPUs that share a layer: heads and ffn divisible by it")
      ->type_name("N")
      ->positive()
      ->group(group);
  command
      .add_option("--pipeline-parallel", o.pipeline_parallel,
                  "Pipeline stages: layers divisible by it")
      ->type_name("N")
      ->positive()
      ->group(group);
}

void add_training_options(Command& command, PlanOptions& o) {
  const char* group = "Training (memory per GPU, time)";
  command.add_option("--gpus", o.gpus, "GPUs to train on (default one copy of the model)")
      ->type_name("N")
      ->check({1, 1e7})
      ->group(group);
  command.add_option("--zero", o.zero, "ZeRO stage: 1 shards AdamW, 2 gradients, 3 weights (FSDP)")
      ->type_name("S")
      ->check({0, 3})
      ->group(group);
  command.add_option("--micro-batch", o.micro_batch, "Sequences of one micro-batch (default 1)")
      ->type_name("B")
      ->positive()
      ->group(group);
  command
      .add_flag("--recompute", o.recompute, "Recompute activations: keep only each layer's input")
      ->group(group);
}

/// Everything that makes a request.
void add_request_options(CommandTree& tree, Command& command, PlanOptions& options) {
  add_budget_options(command, options);
  add_law_options(tree, command, options);
  add_shape_options(tree, command, options);
  add_training_options(command, options);
}

/// The plan command with the options of a request alone.
struct RequestCommand {
  PlanOptions options;
  CommandTree tree;
  Command& command = tree.add(tree.root(), "plan", {}, nullptr);

  explicit RequestCommand(PlanOptions given = {}) : options(std::move(given)) {
    add_request_options(tree, command, options);
  }
};

/// The options besides size, tokens and hardware, for which the map's page has controls.
std::string extra_options(PlanOptions given) {
  const RequestCommand command(std::move(given)), fresh;
  return given_options(command.command, fresh.command,
                       {"SIZE", "--flops", "--tokens", "--tokens-per-parameter", "--hardware"});
}

}  // namespace

serve::PlanWords parse_plan_words(const std::vector<std::string>& words) {
  RequestCommand command;
  std::vector<std::string> line{"plan"};
  line.insert(line.end(), words.begin(), words.end());
  if (parse(command.tree.root(), line).wish != Wish::run) {
    throw ConfigError("expected a size and options of 'fathom plan'");
  }
  return {make_request(command.options), extra_options(command.options)};
}

void add_plan_command(CommandTree& tree) {
  auto options = std::make_shared<PlanOptions>();
  Command& command = tree.add(
      tree.root(), "plan",
      {"A shape for a budget: layers, width, heads, and the evidence",
       "Recommends a shape for a number of parameters or FLOPs, says which depths are equally good "
       "and what leaving that range costs. The pick has the lowest expected loss among shapes that "
       "divide over real nodes: the laws' losses, averaged with votes that fall with the distance "
       "from each law's data. Every statement is marked: exact (counted), proved, fitted (inside "
       "the data in size, tokens and depth), extrapolated, modelled or convention.",
       {{"plan 1.3B", "the shape for 1.3 billion parameters"},
        {"plan 350M --objective decode-latency --hardware rtx4090",
         "the fastest to decode among equally good shapes"},
        {"plan --flops 1e22 --total", "what 1e22 training FLOPs buy, embeddings counted"},
        {"plan 7B --tensor-parallel 8 --pipeline-parallel 4 --kv-group 4",
         "divisible over 32 GPUs, grouped heads"},
        {"plan 70B --gpus 64 --tensor-parallel 8 --zero 1 --recompute",
         "does it fit, and how long does it take"},
        {"plan 125M --emit hf-llama -o config.json", "a config that transformers loads"},
        {"plan 10M --vocab 2048 --emit fathom -o run.toml", "a spec that fathom train takes"},
        {"plan 7B --html map.html --open", "the map of shapes, a page with sliders"},
        {"plan 1T --law levine2020 --json", "everything, for a script"}}},
      [options](Session& session) { run(session, *options); });
  add_request_options(tree, command, *options);
  tree.restrict(command
                    .add_option("--emit", options->emit,
                                "Print a config instead of the report; fathom: a run spec with a "
                                "recipe")
                    ->type_name("FORMAT"),
                emit_names());
  command.add_option("-o,--output", options->output, "Write the config to this file (-: print it)")
      ->type_name("FILE");
  command.add_option("--html", options->html, "Write the map of shapes to this file, as one page")
      ->type_name("FILE");
  command
      .add_option("--overlay", options->overlays,
                  "A study's folder, a law file or POINTS.csv to lay over the map; may be repeated")
      ->type_name("PATH");
  command.add_flag("--open", options->open, "Open the map in the browser");
  command.add_flag("--long", options->long_view,
                   "Show all laws, a chart and published neighbours too");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
