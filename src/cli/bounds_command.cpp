// fathom bounds: what arXiv 2006.12467 proves about a depth and width, and what R_max adds.
#include <fmt/format.h>

#include <cmath>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "core/text.h"
#include "core/units.h"
#include "terminal/table.h"
#include "theory/separation_bounds.h"

namespace fathom {
namespace {

using namespace theory;

struct BoundsOptions {
  AnalysedNetwork network{0, 0, 1};
  std::string match_depths;
  bool json = false;
};

std::string width_text(std::optional<double> log10_width) {
  if (!log10_width) return "undefined (d = H)";
  if (*log10_width < 0) return "none";
  if (*log10_width < 300) return fmt::format("{:.3g}", std::pow(10.0, *log10_width));
  return fmt::format("10^{}", format_significant(*log10_width, 5));
}

Json width_json(std::optional<double> log10_width) {
  if (!log10_width || !(*log10_width < 300)) return nullptr;
  return std::pow(10.0, *log10_width);
}

Json to_json(const BoundsReport& report) {
  const AnalysedNetwork& net = report.network;
  const SeparationBounds& bounds = report.bounds;
  Json document = json_document("bounds");
  document["layers"] = net.layers;
  document["width"] = net.width;
  document["heads"] = net.heads;
  document["threshold_log3_width"] = report.threshold;
  document["regime"] = to_string(bounds.regime);
  document["theorem"] = bounds.theorem;
  document["log3_lower"] = number_or_null(bounds.log3_lower);
  document["log3_upper"] = bounds.log3_upper;
  document["log3_rmax"] = bounds.structural.log3;
  document["rmax"] = nullptr;
  if (bounds.structural.exact) document["rmax"] = bounds.structural.exact->get_str();
  document["printed_upper_below_rmax"] = bounds.printed_upper_below_structural;
  if (!report.remarks.empty()) document["remark"] = join(report.remarks, " ");
  document["match"] = Json::array();
  for (const MatchingWidth& match : report.matches) {
    document["match"].push_back(
        {{"layers", match.layers},
         {"width_printed", width_json(match.log10_width_printed)},
         {"width_multiset", width_json(match.log10_width_multiset)},
         {"log10_width_printed", number_or_null(match.log10_width_printed)},
         {"log10_width_multiset", number_or_null(match.log10_width_multiset)}});
  }
  if (report.shallow) {
    document["corollary2"] = {{"beta1", report.shallow->beta1},
                              {"beta2", report.shallow->beta2},
                              {"layers", report.shallow->layers},
                              {"log10_width", report.shallow->log10_width}};
  }
  return document;
}

void print_bounds_table(Session& session, const SeparationBounds& bounds) {
  Table table({{"bound on the separation rank"},
               {"log3", Align::right},
               {"value", Align::right},
               {"status"}});
  const std::string theorem = fmt::format("Theorem {}", bounds.theorem);
  if (bounds.log3_lower) {
    table.add_row(
        {theorem + " lower", format_significant(*bounds.log3_lower, 5),
         format_power(3, *bounds.log3_lower),
         bounds.lower_says_something() ? "proved in the paper" : "proved, but says nothing here"});
  } else {
    table.add_row({theorem + " lower", "-", "-", "undefined for one coordinate per head"});
  }
  const bool conflict = bounds.printed_upper_below_structural;
  table.add_row({theorem + " upper", format_significant(bounds.log3_upper, 5),
                 format_power(3, bounds.log3_upper),
                 conflict ? "as printed; conflicts with R_max, open" : "as printed in the paper"});
  table.add_row({"R_max upper", format_significant(bounds.structural.log3, 5),
                 bounds.structural.exact && bounds.structural.log3 < 45
                     ? bounds.structural.exact->get_str()
                     : format_power(3, bounds.structural.log3),
                 "proved, at least d positions per side"});
  session.out << table.render(session.terminal);
}

void print_matches(Session& session, const std::vector<MatchingWidth>& matches) {
  session.out << "\nLeast width of a shallower network (Corollary 1)\n";
  Table table({{"layers", Align::right},
               {"printed bound", Align::right},
               {"multiset reading", Align::right},
               {"remark"}});
  for (const MatchingWidth& match : matches) {
    table.add_row({std::to_string(match.layers), width_text(match.log10_width_printed),
                   width_text(match.log10_width_multiset),
                   match.proves_nothing ? "below the deep width: nothing is proved" : ""});
  }
  session.out << table.render(session.terminal)
              << "  printed: eq. (7), (n/k)^k; multiset: ((n+k-1)/k)^k, n = (d-H)/2, k = 3^(L-2),\n"
                 "  which is what reproduces the paper's own example.\n";
}

void print_text(Session& session, const BoundsReport& report) {
  const Terminal& terminal = session.terminal;
  const AnalysedNetwork& net = report.network;
  const Regime regime = report.bounds.regime;
  session.out << terminal.plain(fmt::format("{}  {} layers × width {}, {} head{}\n\n",
                                            terminal.accent("fathom bounds"), net.layers, net.width,
                                            net.heads, net.heads == 1 ? "" : "s"));
  session.out << terminal.plain(
      fmt::format("  {}: L = {} {} log3 d = {:.3f}\n\n", terminal.bold(to_string(regime)),
                  net.layers, regime == Regime::depth_efficient ? "<" : "≥", report.threshold));
  print_bounds_table(session, report.bounds);
  for (const std::string& remark : report.remarks) {
    session.out << "\n";
    for (const std::string& line : wrap(remark, terminal.width - 4)) {
      session.out << "  " << terminal.warning(line) << "\n";
    }
  }
  if (!report.matches.empty()) print_matches(session, report.matches);
  if (const auto& shallow = report.shallow) {
    session.out << terminal.plain(fmt::format(
        "\nCorollary 2: depth {:.2f} and width {} surpass its separation rank\n"
        "  beta1 = {:.4f}, beta2 = {:.2f}: the smallest that the printed bounds allow{}\n",
        shallow->layers, width_text(shallow->log10_width), shallow->beta1, shallow->beta2,
        shallow->shallower ? "" : " (not shallower here)"));
  }
  session.out << "\n  The bounds apply to eq. (3): no softmax, no normalisation, bidirectional; "
                 "they\n  rank shapes by capacity, not by loss.\n";
}

}  // namespace

void add_bounds_command(CommandTree& tree) {
  auto options = std::make_shared<BoundsOptions>();
  Command& command = tree.add(
      tree.root(), "bounds",
      {"What the theory proves about a depth and width",
       "Prints the separation-rank bounds of arXiv 2006.12467 as printed there, in base-3 "
       "logarithms, and R_max, an upper bound that follows from the network's algebra alone.",
       {{"bounds --layers 6 --width 1000 --heads 16 --match-depth 2,3",
         "how wide must 2 or 3 layers be to match 6?"},
        {"bounds --layers 96 --width 12288 --heads 96", "GPT-3"},
        {"bounds --layers 7 --width 8 --json", "where two bounds conflict"}}},
      [options](Session& session) {
        std::vector<std::int64_t> depths;
        if (!options->match_depths.empty()) {
          depths = parse_whole_list(options->match_depths, "--match-depth");
        }
        const BoundsReport report = bounds_report(options->network, depths);
        options->json ? print_json(session, to_json(report)) : print_text(session, report);
      });
  command.add_option("--layers", options->network.layers, "Depth L")->required()->type_name("L");
  command.add_option("--width", options->network.width, "Width d")->required()->type_name("D");
  command.add_option("--heads", options->network.heads, "Attention heads H (default 1)")
      ->type_name("H");
  command
      .add_option("--match-depth", options->match_depths,
                  "Shallower depths, e.g. 2,3: the width each would need")
      ->type_name("L,L");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
