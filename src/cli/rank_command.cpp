// fathom rank: the exact separation rank of one network, or of all its balanced partitions.
#include <fmt/format.h>

#include <chrono>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/rank_options.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "exact/rank_grid.h"
#include "exact/rank_json.h"
#include "exact/rank_request.h"
#include "exact/rank_table.h"
#include "terminal/progress.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using namespace exact;

struct RankCommandOptions {
  std::string family = "attention";
  std::size_t layers = 0;
  std::size_t width = 0;
  std::size_t heads = 1;
  std::size_t positions = 0;
  std::string partition = "left-right";
  std::string output_position;
  std::size_t output_component = 0;
  std::string mask = "bidirectional";
  bool residual = false;
  std::size_t embedding_rank = 0;
  std::size_t inputs = 0;
  std::string pooling = "contiguous";
  bool all_balanced = false;
  bool json = false;
  RankWorkOptions work;
};

RankRequest make_request(const RankCommandOptions& options) {
  RankRequest request;
  request.family = parse_enum<Family>(options.family, "--family");
  request.layers = options.layers;
  request.width = options.width;
  request.heads = options.heads;
  request.positions = options.positions;
  if (!options.all_balanced) request.partition = options.partition;
  if (options.output_position == "0") {
    request.output_position = 0;  // parse_whole wants more than zero
  } else if (!options.output_position.empty() && options.output_position != "all") {
    request.output_position =
        static_cast<std::size_t>(parse_whole(options.output_position, "--output-position"));
  }
  request.output_component = options.output_component;
  request.causal = options.mask == "causal";
  request.residual = options.residual;
  request.embedding_rank = options.embedding_rank;
  request.inputs = options.inputs;
  request.pooling = parse_enum<Pooling>(options.pooling, "--pooling");
  return request;
}

std::string title(const RankSetting& s) {
  if (s.family == Family::conv) {
    return fmt::format("convolutional circuit, {} channels, inputs of dimension {}, {} pooling",
                       s.width, s.inputs, name_of(s.pooling));
  }
  if (s.family == Family::recurrent) {
    return fmt::format("recurrent circuit, depth {}, {} channels, inputs of dimension {}", s.layers,
                       s.width, s.inputs);
  }
  return fmt::format(
      "{} layer{} × width {}, {} head{}, {}{}{}", s.layers, s.layers == 1 ? "" : "s", s.width,
      s.heads, s.heads == 1 ? "" : "s", s.causal ? "causal" : "bidirectional",
      s.residual ? ", residual" : "",
      s.embedding_rank == 0 ? "" : fmt::format(", embedding rank {}", s.embedding_rank));
}

std::string status_text(const RankResult& result) {
  switch (result.status) {
    case RankStatus::exact:
      return result.bound == result.rmax ? "exact: it meets the structural bound, which is proved"
                                         : "exact: it meets the sharper bound, which is proved";
    case RankStatus::generic:
      return fmt::format("generic: saturated below the grid; wrong with probability below {:.1e}",
                         result.error_probability);
    case RankStatus::at_least:
      return "at least: proved from below, the grid was filled";
  }
  throw InternalError("unknown status");
}

void print_result(Session& session, const RankSetting& setting, const RankResult& result) {
  const Terminal& terminal = session.terminal;
  session.out << terminal.plain(
      fmt::format("{}  {}\n\n", terminal.accent("fathom rank"), title(setting)));
  Table table({{"quantity"}, {"value", Align::right}, {"status"}});
  table.add_row({"separation rank", rank_text(result), status_text(result)});
  table.add_row({setting.family == Family::attention ? "R_max" : "structural bound",
                 result.rmax.get_str(), "proved upper bound"});
  if (result.bound < result.rmax) {
    table.add_row({"sharper bound", result.bound.get_str(), "proved for these heads and layers"});
  }
  if (setting.family == Family::attention && !setting.causal) {
    const auto bounds = printed_bounds(setting);
    table.add_row({fmt::format("Theorem {} lower", bounds.theorem),
                   bounds.log3_lower ? format_power(3, *bounds.log3_lower) : "-", "as printed"});
    table.add_row({fmt::format("Theorem {} upper", bounds.theorem),
                   format_power(3, bounds.log3_upper), "as printed"});
  }
  session.out << terminal.plain(table.render(terminal));
  std::size_t largest = 0;
  for (const BlockResult& block : result.blocks) largest = std::max(largest, block.side);
  std::vector<std::string> primes;
  for (const std::uint32_t prime : result.primes) primes.push_back(std::to_string(prime));
  session.out << fmt::format(
      "\n  partition {}{}; {} evaluation; grid {}{}\n  primes {}; {}\n", setting.partition,
      setting.family == Family::attention
          ? fmt::format(", output position {}", setting.output_position)
          : "",
      result.method == Method::gram ? "Gram" : "direct",
      format_whole(static_cast<std::int64_t>(result.grid)),
      result.split ? fmt::format(" in {} degree blocks, the largest {}", result.blocks.size(),
                                 format_whole(static_cast<std::int64_t>(largest)))
                   : "",
      join(primes, ", "), format_seconds(result.seconds));
}

RankOptions with_progress(const RankCommandOptions& options, ProgressLine& line,
                          RankForecast& forecast) {
  RankOptions work = to_rank_options(options.work);
  const auto start = std::chrono::steady_clock::now();
  work.progress = [&line, &forecast, start](const std::string& stage, double fraction) {
    line.update(stage, fraction);
    if (!stage.starts_with("evaluating")) return;
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
    const std::string foretold = forecast.look(fraction, since.count());
    if (!foretold.empty()) line.note(foretold);
  };
  return work;
}

void run_one(Session& session, const RankCommandOptions& options) {
  const RankSetting setting = resolve(make_request(options));
  if (options.output_position == "all") {
    throw ConfigError("--output-position all goes with --all-balanced");
  }
  ProgressLine line(session.err, is_live_error_stream(session.err));
  RankForecast forecast;
  const RankResult result = compute_rank(setting, with_progress(options, line, forecast));
  line.clear();
  if (!options.json) return print_result(session, setting, result);
  Json document = json_document("rank");
  add_setting(document, setting);
  add_result(document, result);
  print_json(session, document);
}

void run_all_balanced(Session& session, const RankCommandOptions& options) {
  const bool every_output = options.output_position == "all";
  const std::vector<RankSetting> settings =
      balanced_settings(resolve(make_request(options)), every_output);
  ProgressLine line(session.err, is_live_error_stream(session.err));
  RankOptions work = to_rank_options(options.work);
  // The Gram form assumes the invariance, which is the question here.
  if (work.method == Method::automatic) work.method = Method::direct;
  TableProgress progress;
  progress.finished = [&](std::size_t, const RankResult&, std::size_t done, std::size_t total) {
    line.update(fmt::format("{} of {} partitions", done, total),
                as_double(done) / as_double(total));
  };
  const std::vector<RankResult> results = compute_ranks(settings, work, nullptr, progress);
  line.clear();
  const PartitionGroups groups = group_partitions(settings, results, every_output);
  if (options.json) {
    Json document = json_document("rank");
    add_balanced(document, settings, results, groups);
    return print_json(session, document);
  }
  const Terminal& terminal = session.terminal;
  session.out << terminal.plain(fmt::format("{}  {}, {} positions, all balanced partitions\n\n",
                                            terminal.accent("fathom rank"), title(settings.front()),
                                            settings.front().positions));
  Table table({{"rank", Align::right}, {"partitions", Align::right}, {"which"}});
  for (const auto& [rank, partitions] : groups) {
    std::vector<std::string> shown(
        partitions.begin(),
        partitions.begin() + std::min<std::ptrdiff_t>(6, std::ssize(partitions)));
    if (shown.size() < partitions.size()) shown.push_back("...");
    table.add_row({format_whole(static_cast<std::int64_t>(rank)), std::to_string(partitions.size()),
                   join(shown, " ")});
  }
  session.out << table.render(terminal);
  session.out << (groups.size() == 1 ? "\n  One rank for all: the partition does not matter here.\n"
                                     : "\n  The partition matters here.\n");
}

void add_network_options(CommandTree& tree, Command& command, RankCommandOptions& o) {
  command.add_option("--layers", o.layers, "Depth L")->type_name("L")->positive();
  command.add_option("--width", o.width, "Width d; for circuits the channels")
      ->type_name("D")
      ->positive();
  command.add_option("--heads", o.heads, "Attention heads H (default 1)")
      ->type_name("H")
      ->positive();
  command.add_option("--positions", o.positions, "Sequence length N (default 2 d; for circuits 8)")
      ->type_name("N")
      ->positive();
  tree.restrict(
      command.add_option("--mask", o.mask, "Which positions a position sees")->type_name("NAME"),
      {"bidirectional", "causal"});
  command.add_flag("--residual", o.residual, "With residual connections");
  command
      .add_option("--embedding-rank", o.embedding_rank,
                  "Inputs of this rank r < d through a shared embedding")
      ->type_name("R")
      ->positive();
  tree.restrict(
      command
          .add_option("--family", o.family, "Network; conv and recurrent are arithmetic circuits")
          ->type_name("NAME"),
      list_names<Family>());
  command
      .add_option("--input-dimension", o.inputs,
                  "Circuits: dimension M of the inputs (default the channels)")
      ->type_name("M")
      ->positive();
  tree.restrict(command.add_option("--pooling", o.pooling, "conv: which nodes are pooled first")
                    ->type_name("NAME"),
                list_names<Pooling>());
}

void add_partition_options(Command& command, RankCommandOptions& o) {
  command
      .add_option("--partition", o.partition,
                  "left-right (default), interleaved, or N digits: 0 is side A, 1 side B")
      ->type_name("P");
  command.add_flag("--all-balanced", o.all_balanced,
                   "Every balanced partition, evaluated from the definition");
  command
      .add_option(
          "--output-position", o.output_position,
          "Position of the output, from 0 (default the last); with --all-balanced also 'all'")
      ->type_name("I");
  command
      .add_option("--output-component", o.output_component,
                  "Component of the output, from 0 (default 0)")
      ->type_name("P");
}

}  // namespace

void add_rank_command(CommandTree& tree) {
  auto options = std::make_shared<RankCommandOptions>();
  Command& command = tree.add(
      tree.root(), "rank",
      {"The exact separation rank of a small network",
       "Computes, over prime fields, how strongly a network can couple two sets of input "
       "positions: the separation rank that arXiv 2006.12467 bounds. The answer is 'exact' where "
       "it meets a proved upper bound (R_max, or a sharper one where theory has it), 'generic' "
       "where the grid saturated (with the probability of error), 'at least' otherwise.",
       {{"rank --layers 2 --width 4", "one head, bidirectional: meets R_max"},
        {"rank --layers 2 --width 4 --heads 4", "heads lower the rank"},
        {"rank --layers 2 --width 2 --positions 4 --mask causal --all-balanced",
         "with a causal mask the partition matters"},
        {"rank --layers 3 --width 2 --positions 6 --partition 011111 --output-position 0",
         "unbalanced"},
        {"rank --family conv --width 4 --positions 8 --partition interleaved",
         "a convolutional arithmetic circuit"},
        {"rank table --layers 2 --widths 1-12", "a whole table, resumable"}}},
      [options](Session& session) {
        if (options->all_balanced) {
          run_all_balanced(session, *options);
        } else {
          run_one(session, *options);
        }
      });
  add_network_options(tree, command, *options);
  add_partition_options(command, *options);
  add_rank_work_options(tree, command, options->work);
  command.add_flag("--json", options->json, "Print JSON");
  add_rank_table_command(tree, command);
}

}  // namespace fathom
