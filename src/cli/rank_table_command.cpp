// fathom rank table: a grid of settings, resumable, rank next to R_max and the printed bounds.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/rank_options.h"
#include "core/counts.h"
#include "core/text.h"
#include "core/units.h"
#include "exact/rank_grid.h"
#include "exact/rank_json.h"
#include "exact/rank_table.h"
#include "terminal/progress.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using namespace exact;

struct RankTableOptions {
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

RankGrid make_grid(const RankTableOptions& options) {
  RankGrid grid;
  grid.layers = parse_sizes(options.layers, "--layers");
  grid.widths = parse_sizes(options.widths, "--widths");
  if (options.heads != "all") grid.heads = parse_sizes(options.heads, "--heads");
  grid.embedding_ranks = parse_sizes(options.embedding_ranks, "--embedding-ranks");
  grid.positions = parse_sizes(options.positions, "--positions");
  if (!options.partitions.empty()) grid.partitions = split(options.partitions, ',');
  grid.a_positions = parse_sizes(options.a_positions, "--a-positions");
  grid.causal = options.mask == "causal";
  grid.residual = options.residual;
  return grid;
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
         bounds.log3_lower ? format_power(3, *bounds.log3_lower) : "-",
         format_power(3, bounds.log3_upper), format_seconds(results[i].seconds)});
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

void run_table(Session& session, const RankTableOptions& options) {
  const std::vector<RankSetting> settings = grid_settings(make_grid(options));
  RankRecords records(options.records);
  ProgressLine line(session.err, is_live_error_stream(session.err));
  TableProgress progress;
  progress.finished = [&](std::size_t index, const RankResult& result, std::size_t done,
                          std::size_t total) {
    line.note(fmt::format("{}/{}  {}: {} {}, {}", done, total, settings[index].key(),
                          to_string(result.status), result.rank, format_seconds(result.seconds)));
    line.update(fmt::format("{} of {} settings", done, total), as_double(done) / as_double(total));
  };
  const std::vector<RankResult> results =
      compute_ranks(settings, to_rank_options(options.work), &records, progress);
  line.clear();
  if (options.json) return print_json_rows(session, settings, results);
  if (options.csv) return print_csv(session, settings, results);
  print_table(session, settings, results);
}

}  // namespace

void add_rank_table_command(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<RankTableOptions>();
  Command& command = tree.add(
      parent, "table",
      {"Separation ranks of a grid of attention networks",
       "Computes every combination of the lists, one setting per core, and prints rank, R_max and "
       "the printed bounds side by side. Finished settings are kept in a record file, so an "
       "interrupted table continues where it stopped.",
       {{"rank table --layers 2 --widths 1-12", "every head count that divides the width"},
        {"rank table --layers 3 --widths 2 --heads 1 --positions 6 --a-positions 1-5",
         "unbalanced partitions"},
        {"rank table --layers 2 --widths 4-8 --embedding-ranks 1-3 --csv", "as CSV"}}},
      [options](Session& session) { run_table(session, *options); });
  command.add_option("--layers", options->layers, "Depths, e.g. 2 or 1-3")->type_name("LIST");
  command.add_option("--widths", options->widths, "Widths, e.g. 1-12 or 2,4,8")->type_name("LIST");
  command
      .add_option("--heads", options->heads,
                  "Head counts; only those that divide the width are used (default all)")
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
                  "Record file to write and resume from (default separation-ranks.jsonl)")
      ->type_name("FILE");
  add_rank_work_options(tree, command, options->work);
  command.add_flag("--csv", options->csv, "Print CSV");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
