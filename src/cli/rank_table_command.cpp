// fathom rank table: a grid of settings, resumable, rank beside R_max and the printed bounds.
#include <fmt/format.h>

#include <cmath>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/rank_options.h"
#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "exact/partition.h"
#include "exact/rank_json.h"
#include "exact/rank_table.h"
#include "terminal/progress.h"
#include "terminal/table.h"
#include "theory/separation_bounds.h"

namespace fathom {
namespace {

using namespace exact;

struct Options {
  std::string layers;
  std::string widths;
  std::string heads = "all";
  std::string positions;
  std::string partitions;
  std::string a_positions;
  std::string embedding_ranks;
  std::string mask = "bidirectional";
  bool residual = false;
  std::string records = "separation-ranks.jsonl";
  bool csv = false;
  bool json = false;
  RankWorkOptions work;
};

std::vector<std::size_t> heads_of(const Options& options, std::size_t width) {
  std::vector<std::size_t> heads;
  if (options.heads == "all") {
    for (std::size_t h = 1; h <= width; ++h) heads.push_back(h);
  } else {
    heads = parse_list(options.heads, "--heads");
  }
  std::erase_if(heads, [&](std::size_t h) { return width % h != 0; });
  return heads;
}

/// Partition and output position: listed partitions (output last), or sizes of the side that holds
/// the output (output first), or left-right.
std::vector<std::pair<std::string, std::size_t>> partitions_of(const Options& options,
                                                               std::size_t positions) {
  std::vector<std::pair<std::string, std::size_t>> result;
  if (!options.a_positions.empty()) {
    for (const std::size_t a : parse_list(options.a_positions, "--a-positions")) {
      if (a >= positions) {
        throw ConfigError(
            fmt::format("--a-positions {} leaves no position for side B of {}", a, positions));
      }
      result.emplace_back(std::string(a, '0') + std::string(positions - a, '1'), 0);
    }
    return result;
  }
  for (const std::string& text :
       split(options.partitions.empty() ? "left-right" : options.partitions, ',')) {
    result.emplace_back(parse_partition(text, positions), positions - 1);
  }
  return result;
}

std::vector<std::size_t> list_or_zero(const std::string& text, const char* what) {
  return text.empty() ? std::vector<std::size_t>{0} : parse_list(text, what);
}

/// Everything the lists leave open for one depth, width, embedding rank and head count.
void add_settings(const Options& options, const RankSetting& base,
                  std::vector<RankSetting>& settings) {
  for (std::size_t positions : list_or_zero(options.positions, "--positions")) {
    if (positions == 0) positions = 2 * base.input_dimension();
    if (positions > kMaxRankWidth) {
      throw ConfigError(fmt::format("--positions must be at most {}", kMaxRankWidth));
    }
    for (const auto& [partition, output] : partitions_of(options, positions)) {
      RankSetting setting = base;
      setting.positions = positions;
      setting.partition = partition;
      setting.output_position = output;
      validate(setting);
      settings.push_back(setting);
    }
  }
}

std::vector<RankSetting> table_settings(const Options& options) {
  if (options.layers.empty() || options.widths.empty()) {
    throw ConfigError("--layers and --widths are required, e.g. --layers 2 --widths 1-12");
  }
  if (!options.partitions.empty() && !options.a_positions.empty()) {
    throw ConfigError("--partitions and --a-positions exclude each other");
  }
  RankSetting base;
  base.causal = options.mask == "causal";
  base.residual = options.residual;
  std::vector<RankSetting> settings;
  for (const std::size_t layers : parse_list(options.layers, "--layers")) {
    for (const std::size_t width : parse_list(options.widths, "--widths")) {
      if (width > kMaxRankWidth) {
        throw ConfigError(fmt::format("--widths must be at most {}", kMaxRankWidth));
      }
      for (const std::size_t rank : list_or_zero(options.embedding_ranks, "--embedding-ranks")) {
        if (rank > width) continue;
        base.layers = layers;
        base.width = width;
        base.embedding_rank = rank;
        for (const std::size_t heads : heads_of(options, width)) {
          base.heads = heads;
          add_settings(options, base, settings);
        }
      }
    }
  }
  if (settings.empty()) throw ConfigError("no setting is left: no --heads divides any --widths");
  return settings;
}

theory::SeparationBounds printed_bounds(const RankSetting& s) {
  return theory::separation_bounds({static_cast<std::int64_t>(s.layers),
                                    static_cast<std::int64_t>(s.width),
                                    static_cast<std::int64_t>(s.heads)});
}

std::string block_ranks(const RankResult& result, const char* separator) {
  std::vector<std::string> ranks;
  for (const BlockResult& block : result.blocks) ranks.push_back(std::to_string(block.rank));
  return join(ranks, separator);
}

void print_table(Session& session, const std::vector<RankSetting>& settings,
                 const std::vector<RankResult>& results) {
  Table table({{"L", Align::right},
               {"d", Align::right},
               {"H", Align::right},
               {"r", Align::right},
               {"N", Align::right},
               {"partition"},
               {"rank", Align::right},
               {"R_max", Align::right},
               {"bound", Align::right},
               {"status"},
               {"thm", Align::right},
               {"lower", Align::right},
               {"upper", Align::right},
               {"time", Align::right}});
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const RankSetting& s = settings[i];
    const auto bounds = printed_bounds(s);
    table.add_row(
        {std::to_string(s.layers), std::to_string(s.width), std::to_string(s.heads),
         s.embedding_rank == 0 ? "-" : std::to_string(s.embedding_rank),
         std::to_string(s.positions),
         s.positions <= 12
             ? s.partition
             : fmt::format("{}+{}", std::count(s.partition.begin(), s.partition.end(), '0'),
                           std::count(s.partition.begin(), s.partition.end(), '1')),
         rank_text(results[i]), results[i].rmax.get_str(), results[i].bound.get_str(),
         to_string(results[i].status), std::to_string(bounds.theorem),
         bounds.log3_lower ? power_of_3_text(*bounds.log3_lower) : "-",
         power_of_3_text(bounds.log3_upper), format_seconds(results[i].seconds)});
  }
  session.out << session.terminal.plain(table.render(session.terminal))
              << "  bound: the sharpest proved upper bound, R_max sharpened by heads and layers.\n"
                 "  lower, upper: the paper's Theorem 1 or 2 as printed, for bidirectional "
                 "attention.\n";
}

void print_csv(Session& session, const std::vector<RankSetting>& settings,
               const std::vector<RankResult>& results) {
  session.out << "layers,width,heads,positions,partition,output_position,mask,residual,"
                 "embedding_rank,rank,status,rmax,bound,grid,error_probability,theorem,log3_lower,"
                 "log3_upper,seconds,block_ranks\n";
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const RankSetting& s = settings[i];
    const RankResult& r = results[i];
    const auto bounds = printed_bounds(s);
    session.out << fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:.3g},{},{},{:.6g},{:.3f},{}\n", s.layers,
        s.width, s.heads, s.positions, s.partition, s.output_position,
        s.causal ? "causal" : "bidirectional", s.residual ? 1 : 0,
        s.embedding_rank == 0 ? "" : std::to_string(s.embedding_rank), r.rank, to_string(r.status),
        r.rmax.get_str(), r.bound.get_str(), r.grid, r.error_probability, bounds.theorem,
        bounds.log3_lower ? fmt::format("{:.6g}", *bounds.log3_lower) : "", bounds.log3_upper,
        r.seconds, block_ranks(r, " "));
  }
}

void print_json_rows(Session& session, const std::vector<RankSetting>& settings,
                     const std::vector<RankResult>& results) {
  Json document = json_document("rank_table");
  document["rows"] = Json::array();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    Json row;
    add_setting(row, settings[i]);
    add_result(row, results[i]);
    const auto bounds = printed_bounds(settings[i]);
    row["theorem"] = bounds.theorem;
    row["log3_lower"] = number_or_null(bounds.log3_lower);
    row["log3_upper"] = bounds.log3_upper;
    document["rows"].push_back(row);
  }
  print_json(session, document);
}

void run_table(Session& session, const Options& options) {
  const std::vector<RankSetting> settings = table_settings(options);
  RankRecords records(options.records);
  ProgressLine line(session.err, is_live_error_stream(session.err));
  TableProgress progress;
  progress.finished = [&](std::size_t index, const RankResult& result, std::size_t done,
                          std::size_t total) {
    line.note(fmt::format("{}/{}  {}: {} {}, {}", done, total, settings[index].key(),
                          to_string(result.status), result.rank, format_seconds(result.seconds)));
    line.update(fmt::format("{} of {} settings", done, total),
                static_cast<double>(done) / static_cast<double>(total));
  };
  const std::vector<RankResult> results =
      compute_ranks(settings, to_rank_options(options.work), &records, progress);
  line.clear();
  if (options.json) return print_json_rows(session, settings, results);
  if (options.csv) return print_csv(session, settings, results);
  print_table(session, settings, results);
}

}  // namespace

void add_rank_table_command(CommandTree& tree, CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App& command = tree.add(
      parent, "table",
      {"Separation ranks of a grid of attention networks",
       "Computes every combination of the lists, two settings at a time on two cores, and prints "
       "rank, R_max and the printed bounds side by side. Finished settings are kept in a record "
       "file, so an interrupted table continues where it stopped.",
       {{"rank table --layers 2 --widths 1-12", "every head count that divides the width"},
        {"rank table --layers 3 --widths 2 --heads 1 --positions 6 --a-positions 1-5",
         "unbalanced partitions"},
        {"rank table --layers 2 --widths 4-8 --embedding-ranks 1-3 --csv", "as CSV"}}},
      [options](Session& session) { run_table(session, *options); });
  command.add_option("--layers", options->layers, "Depths, e.g. 2 or 1-3")->type_name("LIST");
  command.add_option("--widths", options->widths, "Widths, e.g. 1-12 or 2,4,8")->type_name("LIST");
  command
      .add_option("--heads", options->heads,
                  "Head counts, those that divide the width are taken (default all)")
      ->type_name("LIST");
  command.add_option("--positions", options->positions, "Sequence lengths (default 2 d, or 2 r)")
      ->type_name("LIST");
  command
      .add_option("--partitions", options->partitions,
                  "left-right (default), interleaved, digits; the output is the last position")
      ->type_name("LIST");
  command
      .add_option("--a-positions", options->a_positions,
                  "Unbalanced: sizes of side A, which holds the output (position 0)")
      ->type_name("LIST");
  command.add_option("--embedding-ranks", options->embedding_ranks, "Embedding ranks r")
      ->type_name("LIST");
  tree.restrict(command.add_option("--mask", options->mask, "Which positions a position sees")
                    ->type_name("NAME"),
                {"bidirectional", "causal"});
  command.add_flag("--residual", options->residual, "With residual connections");
  command
      .add_option("--records", options->records,
                  "Record file to keep and resume from (default separation-ranks.jsonl)")
      ->type_name("FILE");
  add_rank_work_options(tree, command, options->work);
  command.add_flag("--csv", options->csv, "Print CSV");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
