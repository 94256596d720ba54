// fathom bounds: what arXiv 2006.12467 proves about a depth and width, and what R_max adds.
#include <fmt/format.h>

#include <cmath>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "terminal/table.h"
#include "theory/separation_bounds.h"

namespace fathom {
namespace {

using namespace theory;

struct Options {
  AnalysedNetwork network{0, 0, 1};
  std::string match_depths;
  bool json = false;
};

constexpr const char* kConflictRemark =
    "The printed Theorem 2 upper bound lies below R_max. R_max is proved; computed ranks with one "
    "head reach it or, from width 4 on, come close (31,456 of 31,460 for 3 layers). If they stay "
    "close, the printed bound is wrong here. Open.";

std::vector<std::int64_t> parse_depths(const std::string& text) {
  std::vector<std::int64_t> depths;
  if (text.empty()) return depths;
  for (const std::string& part : split(text, ',')) {
    depths.push_back(parse_whole(part, "--match-depth"));
  }
  return depths;
}

/// 3^x as a readable number: exact-looking while small, a power of ten beyond.
std::string power_of_3(double log3_value) {
  const double log10_value = log3_value * std::log10(3.0);
  if (log10_value < 6) return format_significant(std::pow(10.0, log10_value), 4);
  if (log10_value < 300) return fmt::format("{:.3g}", std::pow(10.0, log10_value));
  return fmt::format("10^{}", format_significant(log10_value, 5));
}

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

Json to_json(const Options& options, const SeparationBounds& bounds,
             const std::vector<MatchingWidth>& matches) {
  Json document = json_document("bounds");
  document["layers"] = options.network.layers;
  document["width"] = options.network.width;
  document["heads"] = options.network.heads;
  document["threshold_log3_width"] = depth_threshold(options.network.width);
  document["regime"] = to_string(bounds.regime);
  document["theorem"] = bounds.theorem;
  document["log3_lower"] = number_or_null(bounds.log3_lower);
  document["log3_upper"] = bounds.log3_upper;
  document["log3_rmax"] = bounds.structural.log3;
  document["rmax"] = nullptr;
  if (bounds.structural.exact) document["rmax"] = bounds.structural.exact->get_str();
  document["printed_upper_below_rmax"] = bounds.printed_upper_below_structural;
  if (bounds.printed_upper_below_structural) document["remark"] = kConflictRemark;
  document["match"] = Json::array();
  for (const MatchingWidth& match : matches) {
    document["match"].push_back(
        {{"layers", match.layers},
         {"width_printed", width_json(match.log10_width_printed)},
         {"width_multiset", width_json(match.log10_width_multiset)},
         {"log10_width_printed", number_or_null(match.log10_width_printed)},
         {"log10_width_multiset", number_or_null(match.log10_width_multiset)}});
  }
  if (bounds.regime == Regime::depth_inefficient) {
    const ShallowEquivalent shallow = shallow_equivalent(options.network);
    document["corollary2"] = {{"beta1", shallow.beta1},
                              {"beta2", shallow.beta2},
                              {"layers", shallow.layers},
                              {"log10_width", shallow.log10_width}};
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
         power_of_3(*bounds.log3_lower),
         *bounds.log3_lower > 0 ? "proved in the paper" : "proved, but says nothing here"});
  } else {
    table.add_row({theorem + " lower", "-", "-", "undefined for one coordinate per head"});
  }
  const bool conflict = bounds.printed_upper_below_structural;
  table.add_row({theorem + " upper", format_significant(bounds.log3_upper, 5),
                 power_of_3(bounds.log3_upper),
                 conflict ? "as printed; conflicts with R_max, open" : "as printed in the paper"});
  table.add_row({"R_max upper", format_significant(bounds.structural.log3, 5),
                 bounds.structural.exact && bounds.structural.log3 < 45
                     ? bounds.structural.exact->get_str()
                     : power_of_3(bounds.structural.log3),
                 "proved, at least d positions a side"});
  session.out << table.render(session.terminal);
}

void print_matches(Session& session, const Options& options,
                   const std::vector<MatchingWidth>& matches) {
  session.out << "\nWidth a shallower network needs at the least (Corollary 1)\n";
  Table table({{"layers", Align::right},
               {"printed bound", Align::right},
               {"multiset reading", Align::right},
               {"remark"}});
  const double own = std::log10(static_cast<double>(options.network.width));
  for (const MatchingWidth& match : matches) {
    const bool empty = match.log10_width_multiset && *match.log10_width_multiset < own;
    table.add_row({std::to_string(match.layers), width_text(match.log10_width_printed),
                   width_text(match.log10_width_multiset),
                   empty ? "below the deep width: nothing is proved" : ""});
  }
  session.out << table.render(session.terminal)
              << "  printed: eq. (7), (n/k)^k; multiset: ((n+k-1)/k)^k, n = (d-H)/2, k = 3^(L-2),\n"
                 "  which is what reproduces the paper's own example.\n";
}

void print_text(Session& session, const Options& options, const SeparationBounds& bounds,
                const std::vector<MatchingWidth>& matches) {
  const Terminal& terminal = session.terminal;
  const AnalysedNetwork& net = options.network;
  session.out << terminal.plain(fmt::format("{}  {} layers × width {}, {} head{}\n\n",
                                            terminal.accent("fathom bounds"), net.layers, net.width,
                                            net.heads, net.heads == 1 ? "" : "s"));
  const double threshold = depth_threshold(net.width);
  session.out << terminal.plain(
      fmt::format("  {}: L = {} {} log3 d = {:.3f}\n\n", terminal.bold(to_string(bounds.regime)),
                  net.layers, bounds.regime == Regime::depth_efficient ? "<" : "≥", threshold));
  print_bounds_table(session, bounds);
  if (bounds.printed_upper_below_structural) {
    session.out << "\n";
    for (const std::string& line : wrap(kConflictRemark, terminal.width - 4)) {
      session.out << "  " << terminal.warning(line) << "\n";
    }
  }
  if (!matches.empty()) print_matches(session, options, matches);
  if (bounds.regime == Regime::depth_inefficient) {
    const ShallowEquivalent shallow = shallow_equivalent(net);
    session.out << terminal.plain(fmt::format(
        "\nCorollary 2: depth {:.2f} and width {} surpass its separation rank\n"
        "  beta1 = {:.4f}, beta2 = {:.2f}: the smallest that the printed bounds allow{}\n",
        shallow.layers, width_text(shallow.log10_width), shallow.beta1, shallow.beta2,
        shallow.layers >= static_cast<double>(net.layers) ? " (not shallower here)" : ""));
  }
  session.out
      << "\n  The bounds speak of eq. (3): no softmax, no normalisation, bidirectional; they\n"
         "  rank shapes by capacity, not by loss.\n";
}

}  // namespace

void add_bounds_command(CommandTree& tree) {
  auto options = std::make_shared<Options>();
  CLI::App& command = tree.add(
      tree.root(), "bounds",
      {"What the theory proves about a depth and width",
       "Prints the separation-rank bounds of arXiv 2006.12467 as printed there, in base-3 "
       "logarithms, and R_max, an upper bound that follows from the network's algebra alone.",
       {{"bounds --layers 6 --width 1000 --heads 16 --match-depth 2,3",
         "how wide must 2 or 3 layers be to match 6?"},
        {"bounds --layers 96 --width 12288 --heads 96", "GPT-3"},
        {"bounds --layers 7 --width 8 --json", "a place where two bounds conflict"}}},
      [options](Session& session) {
        const SeparationBounds bounds = separation_bounds(options->network);
        std::vector<MatchingWidth> matches;
        for (const std::int64_t depth : parse_depths(options->match_depths)) {
          matches.push_back(matching_width(options->network, depth));
        }
        if (options->json) {
          print_json(session, to_json(*options, bounds, matches));
        } else {
          print_text(session, *options, bounds, matches);
        }
      });
  command.add_option("--layers", options->network.layers, "Depth L")->required()->type_name("L");
  command.add_option("--width", options->network.width, "Width d")->required()->type_name("D");
  command.add_option("--heads", options->network.heads, "Attention heads H (default 1)")
      ->type_name("H");
  command
      .add_option("--match-depth", options->match_depths,
                  "Shallower depths, separated by commas: the width each would need")
      ->type_name("L,L");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
