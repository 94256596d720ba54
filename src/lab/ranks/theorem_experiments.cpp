#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/units.h"
#include "exact/field_rank.h"
#include "lab/frame/options.h"
#include "lab/ranks/rank_experiments.h"
#include "lab/ranks/rank_parts.h"
#include "theory/log_binomial.h"
#include "theory/separation_bounds.h"

namespace fathom::lab {
namespace {

using theory::AnalysedNetwork;

struct Size {
  std::size_t layers, width, heads;
};

AnalysedNetwork network_of(const Size& size) {
  return {static_cast<std::int64_t>(size.layers), static_cast<std::int64_t>(size.width),
          static_cast<std::int64_t>(size.heads)};
}

std::vector<Option> size_options() {
  return {integer_option("layers", 0, "L", "One depth, with --width; 0: the claim's list", 0, 8),
          integer_option("width", 0, "D", "One width", 0, kMaxRankWidth),
          integer_option("heads", 1, "H", "Heads, with --layers and --width", 1, kMaxRankWidth)};
}

void check_both_named(const Setup& setup) {
  if (setup.size("layers") == 0 || setup.size("width") == 0) {
    throw ConfigError("name both --layers and --width");
  }
}

std::vector<Size> sizes_of(const Setup& setup, const std::vector<Size>& list) {
  if (!setup.own) return list;
  check_both_named(setup);
  return {{setup.size("layers"), setup.size("width"), setup.size("heads")}};
}

std::vector<Part> plan_sizes(const Setup& setup, const std::vector<Size>& list) {
  std::vector<RankQuestion> questions;
  for (const Size& size : sizes_of(setup, list)) {
    questions.push_back({attention_setting(size.layers, size.width, size.heads)});
  }
  return rank_parts(setup, questions);
}

/// Ranks and bounds of one head at the depth with the most widths.
ExhibitChart bounds_chart(const Json& settings, std::size_t layers) {
  ExhibitChart chart{fmt::format("Rank and printed bounds, {} and one head",
                                 layers == 1 ? "one layer" : fmt::format("{} layers", layers)),
                     "width d",
                     "separation rank",
                     false,
                     true,
                     {{"printed upper bound", {}}, {"rank", {}}, {"printed lower bound", {}}}};
  for (const Json& setting : settings) {
    if (setting["layers"] != layers || setting["heads"] != 1) continue;
    const auto width = setting["width"].get<double>();
    const auto add_bound = [&](std::size_t series, const Json& log3) {
      if (!log3.is_null()) {
        chart.series[series].dots.push_back({width, std::pow(3.0, log3.get<double>())});
      }
    };
    add_bound(0, setting["log3_upper"]);
    chart.series[1].dots.push_back({width, setting["rank"].get<double>()});
    add_bound(2, setting["log3_lower"]);
  }
  return chart;
}

// log3 of a rank may equal a bound; a rounding error must not make it a violation.
constexpr double kRounding = 1e-9;

/// 1,234,567; short where the digits would fill a line.
std::string grouped(const mpz_class& number) {
  return number < 1'000'000'000 ? format_whole(static_cast<std::int64_t>(number.get_ui()))
                                : format_significant(number.get_d(), 3);
}

/// Ranks next to the printed bounds of one theorem; measures `below` and `above`.
Conclusion conclude_sizes(const Setup& setup, const std::vector<Size>& list, int theorem,
                          const std::vector<Json>& results) {
  const std::vector<Size> sizes = sizes_of(setup, list);
  Conclusion conclusion;
  ExhibitTable table{"Exact ranks beside the printed bounds",
                     {"L", "d", "H", "printed lower", "rank", "printed upper", "R_max", "status"},
                     {}};
  double below = 0;
  double above = 0;
  double law = 0;
  bool applies = false;
  conclusion.data["settings"] = Json::array();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const exact::RankResult found = rank_result(results[i]);
    const auto bounds = theory::separation_bounds(network_of(sizes[i]));
    const double log3_rank = std::log(static_cast<double>(found.rank)) / std::log(3.0);
    const bool whole = found.status != exact::RankStatus::at_least;
    if (bounds.theorem == theorem) {
      applies = true;
      if (whole && bounds.log3_lower && log3_rank < *bounds.log3_lower - kRounding) ++below;
      if (log3_rank > bounds.log3_upper + kRounding) ++above;
    }
    if (sizes[i].width == 1 && found.rank != (std::pow(3, sizes[i].layers) + 1) / 2) ++law;
    const auto power = [](double log3) {
      const double value = std::pow(3.0, log3);
      return value < 1e3 || value >= 1e7 ? format_significant(value, 3)
                                         : format_whole(std::llround(value));
    };
    conclusion.data["settings"].push_back(
        {{"layers", sizes[i].layers},
         {"width", sizes[i].width},
         {"heads", sizes[i].heads},
         {"theorem", bounds.theorem},
         {"rank", found.rank},
         {"status", to_string(found.status)},
         {"log3_rank", log3_rank},
         {"log3_lower", bounds.log3_lower ? Json(*bounds.log3_lower) : Json()},
         {"log3_upper", bounds.log3_upper}});
    table.rows.push_back({std::to_string(sizes[i].layers), std::to_string(sizes[i].width),
                          std::to_string(sizes[i].heads),
                          bounds.log3_lower ? power(*bounds.log3_lower) : "-", rank_words(found),
                          power(bounds.log3_upper), grouped(found.rmax), to_string(found.status)});
  }
  if (applies) conclusion.measures = {{"below", below}, {"above", above}};
  if (theorem == 2 && !setup.own) conclusion.measures.push_back({"width-1", law});
  if (!applies) {
    conclusion.notes.push_back(fmt::format(
        "Theorem {} does not apply here: the regime changes at log3 d layers", theorem));
  }
  conclusion.tables.push_back(std::move(table));
  if (!setup.own) {
    const std::size_t layers = theorem == 1 ? 1 : 2;  // the depth with the most widths
    conclusion.charts.push_back(bounds_chart(conclusion.data["settings"], layers));
  }
  return conclusion;
}

std::vector<Size> theorem_one_list(const Setup& setup) {
  std::vector<Size> list;
  for (std::size_t d = 4; d <= 12; d += 2) {
    for (const std::size_t h : {std::size_t{1}, std::size_t{2}, d}) list.push_back({1, d, h});
  }
  list.push_back({2, 10, 1});
  list.push_back({2, 10, 2});
  if (!setup.quick) {
    for (const std::size_t h : {5, 10}) list.push_back({2, 10, h});
    list.push_back({2, 12, 1});
  }
  return list;
}

std::vector<Size> theorem_two_list(const Setup& setup) {
  std::vector<Size> list;
  for (std::size_t layers = 1; layers <= 6; ++layers) list.push_back({layers, 1, 1});
  for (std::size_t d = 2; d <= (setup.quick ? 6u : 9u); ++d) {
    for (std::size_t h = 1; h <= d; ++h) {
      if (d % h == 0) list.push_back({2, d, h});
    }
  }
  for (const std::size_t h : {1, 2}) {
    list.push_back({3, 2, h});
    list.push_back({4, 2, h});
  }
  list.push_back({3, 3, 3});
  if (!setup.quick) list.push_back({3, 3, 1});
  return list;
}

// ---- the printed upper bound of Theorem 2 against R_max

constexpr int kUpperVersion = 1;
constexpr int kChartWidth = 8;  // the least width at which the bounds cross

/// log3 binom(floor(C/2) + D, D): what the blocks of degree k <= C/2 alone would give.
double log3_half_blocks(std::int64_t layers, std::int64_t width) {
  const double half = std::floor(static_cast<double>(theory::gram_degree(layers)) / 2);
  const auto d = static_cast<double>(width);
  return theory::log_binomial(half, d * (d + 1) / 2) / std::log(3.0);
}

Json upper_bounds(std::int64_t layers, std::int64_t width) {
  const auto bounds = theory::separation_bounds({layers, width, 1});
  return {{"layers", layers},
          {"width", width},
          {"log3_printed", bounds.log3_upper},
          {"log3_rmax", bounds.structural.log3},
          {"log3_half_blocks", log3_half_blocks(layers, width)},
          {"conflict", bounds.printed_upper_below_structural}};
}

std::vector<std::pair<std::int64_t, std::int64_t>> upper_list(const Setup& setup) {
  if (setup.own) {
    check_both_named(setup);
    return {{static_cast<std::int64_t>(setup.size("layers")),
             static_cast<std::int64_t>(setup.size("width"))}};
  }
  return {{4, 8}, {5, 8}, {6, 8}, {7, 8}, {6, 16}, {6, 64}, {6, 100}, {7, 512}, {8, 1000}};
}

std::vector<Part> plan_upper(const Setup& setup) {
  std::vector<Part> parts;
  for (const auto& [layers, width] : upper_list(setup)) {
    parts.push_back({fmt::format("upper bound v{} L={} d={}", kUpperVersion, layers, width), 1,
                     [l = layers, d = width](const Ticker&) { return upper_bounds(l, d); }});
  }
  return parts;
}

Conclusion conclude_upper(const Setup&, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{"log3 of bounds, one head",
                     {"L", "d", "printed upper bound", "blocks k <= C/2 alone", "R_max",
                      "rows of a deciding grid"},
                     {}};
  ExhibitChart chart{"Upper bounds at width 8",
                     "layers",
                     "log3 of the rank",
                     false,
                     false,
                     {{"printed upper bound", {}}, {"R_max", {}}}};
  conclusion.data["settings"] = Json::array();
  double conflicts = 0;
  for (const Json& found : results) {
    conflicts += found.at("conflict").get<bool>() ? 1 : 0;
    conclusion.data["settings"].push_back(found);
    const double printed = found["log3_printed"].get<double>();
    if (found["width"] == kChartWidth) {
      const auto layers = found["layers"].get<double>();
      chart.series[0].dots.push_back({layers, printed});
      chart.series[1].dots.push_back({layers, found["log3_rmax"].get<double>()});
    }
    const auto number = [&](const char* key) {
      return fmt::format("{:.1f}", found[key].get<double>());
    };
    table.rows.push_back({found["layers"].dump(), found["width"].dump(), number("log3_printed"),
                          number("log3_half_blocks"), number("log3_rmax"),
                          fmt::format("1e{:.0f}", printed * std::log10(3.0))});
  }
  conclusion.data["conflicts"] = conflicts;
  conclusion.measures = {{"rank", {}}};
  conclusion.tables.push_back(std::move(table));
  if (!chart.series[0].dots.empty()) conclusion.charts.push_back(std::move(chart));
  conclusion.notes.push_back(
      "where R_max lies above the printed bound one of them is not sharp: the network would break "
      "the bound if it filled the blocks of low degree, as it does wherever that could be "
      "computed");
  return conclusion;
}

// ---- Corollary 1's example

Conclusion conclude_corollary(const Setup&, const std::vector<Json>& results) {
  const Json& found = results.front();
  Conclusion conclusion;
  conclusion.data = found;
  ExhibitTable table{
      "Width that a shallow network needs to match 6 layers of width 1,000, 16 heads",
      {"shallow layers", "printed in the paper", "from eq. (7) as printed",
       "from ((n + k - 1)/k)^k"},
      {}};
  double worst_printed = 1;
  double worst_multiset = 1;
  const auto ratio = [](double printed, double width) {
    return std::max(printed / width, width / printed);
  };
  for (const Json& row : found.at("widths")) {
    const double as_printed = std::pow(10.0, row["log10_printed"].get<double>());
    const double multiset = std::pow(10.0, row["log10_multiset"].get<double>());
    const double paper = row["paper"].is_null() ? 0 : row["paper"].get<double>();
    if (paper > 0) {
      worst_printed = std::max(worst_printed, ratio(paper, as_printed));
      worst_multiset = std::max(worst_multiset, ratio(paper, multiset));
    }
    table.rows.push_back({row["layers"].dump(), paper > 0 ? fmt::format("{:.0e}", paper) : "-",
                          format_significant(as_printed, 3), format_significant(multiset, 3)});
  }
  conclusion.measures = {{"printed", worst_printed}, {"multiset", worst_multiset}};
  conclusion.tables.push_back(std::move(table));
  return conclusion;
}

std::vector<Part> plan_corollary(const Setup&) {
  return {{"corollary 1 v1", 1, [](const Ticker&) {
             Json json{{"widths", Json::array()}};
             for (const std::int64_t layers : {2, 3, 4}) {
               const auto match = theory::matching_width({6, 1000, 16}, layers);
               json["widths"].push_back({{"layers", layers},
                                         {"paper", layers == 2   ? Json(2e17)
                                                   : layers == 3 ? Json(2e5)
                                                                 : Json()},
                                         {"log10_printed", match.log10_width_printed.value()},
                                         {"log10_multiset", match.log10_width_multiset.value()}});
             }
             return json;
           }}};
}

}  // namespace

Experiment theorem_one_experiment() {
  return {"theorem-1", size_options(),
          [](const Setup& setup) { return plan_sizes(setup, theorem_one_list(setup)); },
          [](const Setup& setup, const std::vector<Json>& results) {
            return conclude_sizes(setup, theorem_one_list(setup), 1, results);
          }};
}

Experiment theorem_two_experiment() {
  return {"theorem-2", size_options(),
          [](const Setup& setup) { return plan_sizes(setup, theorem_two_list(setup)); },
          [](const Setup& setup, const std::vector<Json>& results) {
            return conclude_sizes(setup, theorem_two_list(setup), 2, results);
          }};
}

Experiment theorem_two_upper_experiment() {
  std::vector<Option> options = size_options();
  options.pop_back();  // one head
  for (Option& option : options) option.high = option.name == "layers" ? 12 : 100000;
  return {"theorem-2-upper", options, plan_upper, conclude_upper};
}

Experiment corollary_experiment() {
  return {"corollary-1", {}, plan_corollary, conclude_corollary};
}

}  // namespace fathom::lab
