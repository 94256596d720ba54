// fathom bench train: how fast training steps are on this machine, and what limits them.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/plan_listing.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "core/units.h"
#include "engine/cuda/module.h"
#include "engine/peak.h"
#include "engine/plan/device_offers.h"
#include "terminal/table.h"
#include "train/step_benchmark.h"

namespace fathom {
namespace {

struct BenchOptions {
  std::string shapes = "2x64,4x128,6x192,6x256,12x256,12x384";
  std::int64_t batch = 16, context = 256, vocab = 1000;
  int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::string precision = "f32", device = "cpu", activation = "gelu";
  std::int64_t head_size = 0;
  double seconds = 8;

  engine::Device place() const {
    return {.kind = device == "cuda" ? engine::DeviceKind::cuda : engine::DeviceKind::cpu,
            .threads = threads};
  }
  engine::DType type() const {
    return precision == "bf16" ? engine::DType::bf16 : engine::DType::f32;
  }
  model::BuildOptions build_options() const {
    model::BuildOptions build;
    build.batch = batch;
    build.precision = precision == "bf16" ? model::Precision::bf16 : model::Precision::f32;
    return build;
  }
  bool profile = false, json = false;
  bool print_plan = false;
  std::string offers;  // of which a plan is printed; "": those of the device
};

struct Row {
  model::ModelSpec spec;
  train::StepTiming timing;
};

/// What the machine was measured to do, for the floors of a step.
struct Speeds {
  double gemm_flops = 0, memory_bytes = 0;  // a second
};

model::ModelSpec parse_shape(const std::string& text, const BenchOptions& options) {
  const auto parts = split(text, 'x');
  if (parts.size() != 2) throw ConfigError(fmt::format("shape '{}' must look like 6x256", text));
  model::ModelSpec spec;
  spec.layers = parse_whole(parts[0], "layers");
  spec.width = parse_whole(parts[1], "width");
  const std::int64_t usual = spec.width < 256 ? 32 : 64;
  spec.heads =
      std::max<std::int64_t>(1, spec.width / (options.head_size > 0 ? options.head_size : usual));
  spec.activation =
      options.activation == "gelu_tanh" ? model::FeedForward::gelu_tanh : model::FeedForward::gelu;
  spec.context = options.context;
  spec.vocab = options.vocab;
  return spec;
}

std::vector<model::ModelSpec> parse_shapes(const BenchOptions& options) {
  std::vector<model::ModelSpec> specs;
  for (const std::string& shape : split(options.shapes, ',')) {
    specs.push_back(parse_shape(shape, options));
    model::validate(specs.back());
  }
  return specs;
}

std::string place_name(const BenchOptions& options) {
  if (options.device == "cuda") return engine::cuda_module().describe(0).name;
  return fmt::format("{} threads", options.threads);
}

void print_table(Session& session, const BenchOptions& options, const std::vector<Row>& rows,
                 const Speeds& speeds) {
  const auto tokens = as_double(options.batch * options.context);
  Table table({{"L x D"},
               {"parameters", Align::right},
               {"step", Align::right},
               {"tokens/s", Align::right},
               {"median", Align::right},
               {"GFLOP/s", Align::right},
               {"of peak", Align::right},
               {"FLOP floor", Align::right},
               {"byte floor", Align::right},
               {"memory", Align::right},
               {"first step", Align::right}});
  for (const Row& row : rows) {
    const train::StepTiming& t = row.timing;
    table.add_row(
        {fmt::format("{} x {}", row.spec.layers, row.spec.width), format_whole(t.parameters),
         format_seconds(t.best_seconds), fmt::format("{:.0f}", tokens / t.best_seconds),
         fmt::format("{:.0f}", tokens / t.median_seconds),
         fmt::format("{:.1f}", t.flops / t.best_seconds / 1e9),
         fmt::format("{:.0f} %", 100 * t.flops / t.best_seconds / speeds.gemm_flops),
         format_seconds(t.flops / speeds.gemm_flops), format_seconds(t.bytes / speeds.memory_bytes),
         format_bytes(as_double(t.memory_bytes)), format_seconds(t.first_seconds)});
  }
  session.out << session.terminal.plain(
                     fmt::format("{}  {}, {}, batch {} x {}, vocabulary {}; GEMMs reach "
                                 "{:.0f} GFLOP/s, memory {}/s\n\n",
                                 session.terminal.accent("fathom bench train"), options.precision,
                                 place_name(options), options.batch, options.context, options.vocab,
                                 speeds.gemm_flops / 1e9, format_bytes(speeds.memory_bytes)))
              << table.render(session.terminal)
              << "\n  floors: the step's GEMMs at the measured GEMM speed; every op's operands and "
                 "results\n  moved once at memory speed\n";
  if (!options.profile) return;
  for (const Row& row : rows) {
    Table ops({{"op of one step (' backward)"}, {"time", Align::right}, {"share", Align::right}});
    std::vector<std::pair<double, std::string>> sorted;
    double total = 0;
    for (const auto& [name, seconds] : row.timing.seconds_by_op) {
      sorted.emplace_back(seconds, name);
      total += seconds;
    }
    std::sort(sorted.rbegin(), sorted.rend());
    for (const auto& [seconds, name] : sorted) {
      ops.add_row({name, format_seconds(seconds), fmt::format("{:.1f} %", 100 * seconds / total)});
    }
    session.out << fmt::format("\n{} x {}\n", row.spec.layers, row.spec.width)
                << ops.render(session.terminal);
  }
}

void print_rows(Session& session, const BenchOptions& options, const std::vector<Row>& rows,
                const Speeds& speeds, double peak_memory) {
  const auto tokens = as_double(options.batch * options.context);
  Json document = json_document("bench_train");
  document["precision"] = options.precision;
  document["device"] = options.device;
  document["place"] = place_name(options);
  document["threads"] = options.threads;
  document["batch"] = options.batch;
  document["context"] = options.context;
  document["vocab"] = options.vocab;
  document["product_flops_per_second"] = speeds.gemm_flops;
  document["memory_bytes_per_second"] = speeds.memory_bytes;
  document["peak_memory_bytes"] = peak_memory;
  document["shapes"] = Json::array();
  for (const Row& row : rows) {
    const train::StepTiming& t = row.timing;
    Json ops = Json::object();
    for (const auto& [name, seconds] : t.seconds_by_op) ops[name] = seconds;
    document["shapes"].push_back({{"layers", row.spec.layers},
                                  {"width", row.spec.width},
                                  {"heads", row.spec.heads},
                                  {"parameters", t.parameters},
                                  {"steps", t.steps},
                                  {"best_seconds", t.best_seconds},
                                  {"median_seconds", t.median_seconds},
                                  {"first_seconds", t.first_seconds},
                                  {"tokens_per_second_best", tokens / t.best_seconds},
                                  {"tokens_per_second_median", tokens / t.median_seconds},
                                  {"flops", t.flops},
                                  {"nominal_flops", t.nominal_flops},
                                  {"share_of_peak", t.flops / t.best_seconds / speeds.gemm_flops},
                                  {"flop_floor_seconds", t.flops / speeds.gemm_flops},
                                  {"bytes", t.bytes},
                                  {"byte_floor_seconds", t.bytes / speeds.memory_bytes},
                                  {"memory_bytes", t.memory_bytes},
                                  {"seconds_by_op", ops}});
  }
  print_json(session, document);
}

void print_plan(const BenchOptions& options, Session& session) {
  model::BuildOptions build = options.build_options();
  if (options.offers.empty()) {
    build.target = engine::target_of(options.place());
  } else {
    build.target.offers = engine::find_offers(options.offers);
  }
  std::vector<std::unique_ptr<const model::Transformer>> models;
  for (const model::ModelSpec& spec : parse_shapes(options)) {
    models.push_back(model::build_transformer(spec, build));
  }
  print_plans(session, models, options.json);
}

void run_bench(const BenchOptions& options, Session& session) {
  if (options.print_plan) return print_plan(options, session);
  if (!options.offers.empty()) throw ConfigError("--offers needs --print-plan");
  const std::vector<model::ModelSpec> specs = parse_shapes(options);
  Speeds speeds{.gemm_flops = measure_gemm_flops(options.place(), options.type())};
  std::vector<Row> rows;
  for (const model::ModelSpec& spec : specs) {
    rows.push_back(
        {spec, train::time_steps(spec, options.build_options(), options.place(), options.seconds)});
  }
  const double peak_memory = peak_memory_bytes();
  // Last: it takes more memory than small models do.
  speeds.memory_bytes = measure_memory_bandwidth(options.place());
  if (options.json) {
    print_rows(session, options, rows, speeds, peak_memory);
  } else {
    print_table(session, options, rows, speeds);
  }
}

struct PackOptions : BenchOptions {
  std::int64_t steps = 50;
};

void run_pack(const PackOptions& options, Session& session) {
  const std::vector<model::ModelSpec> specs = parse_shapes(options);
  const train::PackTiming timing =
      train::time_pack(specs, options.build_options(), options.place(), options.steps);
  double alone = 0;
  for (const double seconds : timing.alone_seconds) alone += seconds;
  const double gain = alone / timing.together_seconds;
  if (options.json) {
    Json document = json_document("bench_pack");
    document["place"] = place_name(options);
    document["steps"] = options.steps;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      document["models"].push_back({{"layers", specs[i].layers},
                                    {"width", specs[i].width},
                                    {"alone_seconds", timing.alone_seconds[i]}});
    }
    document["alone_seconds"] = alone;
    document["together_seconds"] = timing.together_seconds;
    document["gain"] = gain;
    document["same_bits"] = timing.same_bits;
    print_json(session, document);
    return;
  }
  Table table({{"L x D"}, {"step alone", Align::right}});
  for (std::size_t i = 0; i < specs.size(); ++i) {
    table.add_row({fmt::format("{} x {}", specs[i].layers, specs[i].width),
                   format_seconds(timing.alone_seconds[i] / as_double(options.steps))});
  }
  session.out
      << session.terminal.plain(fmt::format("{}  {}, {}, batch {} x {}, {} steps of each model\n\n",
                                            session.terminal.accent("fathom bench pack"),
                                            options.precision, place_name(options), options.batch,
                                            options.context, options.steps))
      << table.render(session.terminal)
      << fmt::format(
             "\n  one after the other {}, side by side {}: {:.2f} times as fast; results {}\n",
             format_seconds(alone), format_seconds(timing.together_seconds), gain,
             timing.same_bits ? "are bit-identical" : "DIFFER");
}

void add_shape_options(CommandTree& tree, Command& command, BenchOptions& options) {
  command.add_option("--shapes", options.shapes, "Shapes (layers x width), separated by commas")
      ->type_name("LxD,...");
  command.add_option("--batch", options.batch, "Sequences per step (default 16)")
      ->check(Range{1, 1 << 20});
  command.add_option("--context", options.context, "Tokens per sequence (default 256)")
      ->check(Range{1, 1 << 20});
  command.add_option("--vocab", options.vocab, "Vocabulary (default 1000)")
      ->check(Range{2, 1 << 24});
  command.add_option("--threads", options.threads, "Threads (default: all cores)")
      ->check(Range{1, 1024});
  tree.restrict(
      command.add_option("--precision", options.precision, "Precision of matrix products"),
      {"f32", "bf16"});
  tree.restrict(command.add_option("--device", options.device, "Where to run"), {"cpu", "cuda"});
  tree.restrict(command.add_option("--activation", options.activation,
                                   "Exact GELU or GPT-2's tanh approximation"),
                {"gelu", "gelu_tanh"});
  command.add_option("--head-size", options.head_size, "Size of a head (default 32 or 64)")
      ->check(Range{1, 1024});
  command.add_flag("--json", options.json, "Print JSON");
}

}  // namespace

void add_bench_command(CommandTree& tree) {
  Command& bench = tree.add(tree.root(), "bench",
                            {"How fast this machine trains",
                             "Benchmarks on this machine, with the limit next to the result.",
                             {{"bench train", "training steps of six shapes"},
                              {"bench pack", "several models at once on one device"}}},
                            {});
  auto options = std::make_shared<BenchOptions>();
  Command& command = tree.add(
      bench, "train",
      {"Time training steps",
       "Times whole training steps (forward, backward, clipping, AdamW) of GPT-style models on "
       "random tokens. FLOP/s count the GEMMs a causal model needs, not the masked half.",
       {{"bench train", "six shapes, f32, all cores"},
        {"bench train --shapes 2x64 --profile", "which ops take the time"},
        {"bench train --precision bf16 --threads 1 --json", "one core, for a script"},
        {"bench train --device cuda --precision bf16 --batch 64 --context 1024", "one GPU"},
        {"bench train --shapes 6x128 --precision bf16 --print-plan --offers hopper",
         "the ops of a step on an H200, fused ones included; needs no GPU"}}},
      [options](Session& session) { run_bench(*options, session); });
  add_shape_options(tree, command, *options);
  command.add_option("--seconds", options->seconds, "Time for each shape (default 8)")
      ->check(Range{0.0, 3600.0});
  command.add_flag("--profile", options->profile, "Show the time of each kind of op");
  command.add_flag("--print-plan", options->print_plan,
                   "Print the ops of a step (operands, lane, FLOPs, bytes) instead of timing it");
  tree.restrict(command.add_option("--offers", options->offers,
                                   "With --print-plan: the fused ops of this kind of device "
                                   "(default: of the device itself)"),
                engine::offer_names());

  auto pack = std::make_shared<PackOptions>();
  pack->threads = 1;
  Command& together = tree.add(
      bench, "pack",
      {"Time several models at once on one device",
       "Trains each model alone, then all of them side by side, and compares time and results.",
       {{"bench pack --shapes 2x64,2x64", "one model per core"},
        {"bench pack --device cuda --precision bf16 --shapes 6x128,12x64,2x320", "on one GPU"}}},
      [pack](Session& session) { run_pack(*pack, session); });
  add_shape_options(tree, together, *pack);
  together.add_option("--steps", pack->steps, "Steps of each model (default 50)")
      ->check(Range{1, 1000000});
}

}  // namespace fathom
