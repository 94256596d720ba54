// fathom compare: several shapes side by side, the terminal's twin of the map.
#include <fmt/format.h>

#include <functional>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/shape_json.h"
#include "cli/shape_view.h"
#include "core/error.h"
#include "core/units.h"
#include "shape/find_shape.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using planner::LawPlace;
using planner::ShapeReport;

struct CompareOptions {
  std::vector<std::string> names;
  std::string hardware = kDefaultHardware;
  std::string tokens = std::to_string(kDefaultStepTokens);
  bool json = false;
};

using Cell = std::function<std::string(const ShapeReport&)>;

std::string feed_forward_text(const Shape& s) {
  if (!s.mixture()) return fmt::format("{}{}", s.ffn, s.gated() ? " gated" : "");
  return fmt::format("{} of {} × {}", s.experts.active, s.experts.routed, s.experts.ffn);
}

std::string place_text(const ShapeReport& r, std::size_t law) {
  if (r.subject.shape.mixture()) return "";
  const LawPlace& place = r.places[law];
  return fmt::format("{:.0f}{}", place.optimum.layers,
                     place.evidence == laws::Evidence::extrapolated ? " extrapolated" : "");
}

std::vector<std::pair<std::string, Cell>> rows(const ShapeReport& first) {
  std::vector<std::pair<std::string, Cell>> list{
      {"layers × width", [](const ShapeReport& r) { return depth_by_width(r.subject.shape); }},
      {"heads (kv) of size",
       [](const ShapeReport& r) {
         const Shape& s = r.subject.shape;
         return fmt::format("{} ({}) of {}", s.heads, s.kv_heads, s.head_size);
       }},
      {"feed-forward", [](const ShapeReport& r) { return feed_forward_text(r.subject.shape); }},
      {"vocabulary",
       [](const ShapeReport& r) {
         return fmt::format("{}{}", format_whole(r.subject.shape.vocab),
                            r.subject.shape.tied ? " tied" : "");
       }},
      {"parameters", [](const ShapeReport& r) { return format_whole(r.parameters.total()); }},
      {"active per token",
       [](const ShapeReport& r) { return format_whole(r.parameters.active()); }},
      {"in the blocks",
       [](const ShapeReport& r) { return format_whole(r.parameters.non_embedding()); }},
      {"training FLOPs/token",
       [](const ShapeReport& r) { return format_significant(r.flops.train_per_token, 3); }},
      {"weights, grads, AdamW",
       [](const ShapeReport& r) { return format_bytes(r.memory.state()); }},
      {"KV cache per token",
       [](const ShapeReport& r) { return format_bytes(r.kv_bytes_per_token); }},
      {"training tokens/s",
       [](const ShapeReport& r) {
         return format_count(as_double(r.step_tokens) / r.step.total());
       }},
      {"decode one token", [](const ShapeReport& r) { return format_seconds(r.decode.total()); }}};
  for (std::size_t law = 0; law < first.places.size(); ++law) {
    if (!first.places[law].info.fitted) continue;
    list.emplace_back(first.places[law].info.title + ": layers",
                      [law](const ShapeReport& r) { return place_text(r, law); });
  }
  list.emplace_back("laws combined: layers", [](const ShapeReport& r) {
    return r.consensus ? fmt::format("{:.0f} ({:.0f} to {:.0f})", r.consensus->optimum.layers,
                                     r.consensus->band.low, r.consensus->band.high)
                       : "dense models only";
  });
  list.emplace_back("loss of its depth", [](const ShapeReport& r) {
    return r.consensus ? fmt::format("{} {}", format_percent(r.consensus->penalty),
                                     to_string(r.consensus->evidence))
                       : "";
  });
  return list;
}

void print_text(Session& session, const std::vector<ShapeReport>& reports) {
  std::vector<Table::Column> columns{{"", Align::left}};
  for (const ShapeReport& r : reports) columns.push_back({r.subject.name, Align::right});
  Table table(columns);
  for (const auto& [title, cell] : rows(reports.front())) {
    std::vector<std::string> cells{title};
    for (const ShapeReport& r : reports) cells.push_back(cell(r));
    table.add_row(cells);
  }
  for (const ShapeReport& r : reports) {
    if (!r.subject.note.empty()) session.out << session.terminal.warning(r.subject.note) << "\n";
  }
  session.out << table.render(session.terminal);
  session.out << session.terminal.plain(
      fmt::format("  Laws at each shape's own 12·L·d²; loss over the best at that size. Times "
                  "modelled on {}.\n",
                  reports.front().hardware.title));
}

void run(Session& session, const CompareOptions& options) {
  if (options.names.size() < 2) {
    throw ConfigError("give two shapes or more: names, hub ids, config.json files or LxD");
  }
  const Hardware hardware = find_hardware(options.hardware);
  const std::int64_t tokens = parse_whole(options.tokens, "--step-tokens");
  std::vector<ShapeReport> reports;
  for (const std::string& name : options.names) {
    reports.push_back(planner::report_shape(find_shape(name, {}), hardware, tokens));
  }
  if (!options.json) return print_text(session, reports);
  Json document = json_document("compare");
  for (const ShapeReport& r : reports) document["shapes"].push_back(shape_report_json(r));
  print_json(session, document);
}

}  // namespace

void add_compare_command(CommandTree& tree) {
  auto options = std::make_shared<CompareOptions>();
  Command& command =
      tree.add(tree.root(), "compare",
               {"Shapes side by side: counts, memory, speed, and what the laws say",
                "Every column is a published model, a hub id, a config.json or LAYERSxWIDTH. The "
                "laws are evaluated at each shape's own size; the loss is that of its depth "
                "relative to the best depth there.",
                {{"compare Llama-3-8B Qwen3-8B 48x3584", "two released models and one of yours"},
                 {"compare mistralai/Mixtral-8x7B-v0.1 ./config.json", "a hub id and a file"}}},
               [options](Session& session) { run(session, *options); });
  command.add_option("SHAPE", options->names, "Two or more shapes")->suggest(published_names());
  command
      .add_option("--hardware", options->hardware,
                  fmt::format("Profile for times, or a .toml file (default {})", kDefaultHardware))
      ->type_name("HW")
      ->suggest(hardware_names());
  command
      .add_option("--step-tokens", options->tokens,
                  fmt::format("Tokens per step and device (default {})", kDefaultStepTokens))
      ->type_name("N");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
