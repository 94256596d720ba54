#include <fmt/format.h>

#include <map>
#include <set>
#include <span>

#include "core/error.h"
#include "core/text.h"
#include "exact/partition.h"
#include "lab/frame/options.h"
#include "lab/ranks/rank_experiments.h"
#include "lab/ranks/rank_parts.h"

namespace fathom::lab {
namespace {

using exact::RankSetting;

// ---- partitions

struct PartitionCase {
  std::size_t layers, width, heads, positions;
  bool causal;
};

/// Every balanced partition, one of each pair of complements, the output at the last position.
std::vector<RankQuestion> all_partitions(const PartitionCase& c) {
  std::vector<RankQuestion> questions;
  for (const std::string& partition : exact::balanced_partitions(c.positions)) {
    if (partition[0] != '0') continue;
    RankSetting setting = attention_setting(c.layers, c.width, c.heads, c.positions);
    setting.partition = partition;
    setting.causal = c.causal;
    questions.push_back({setting, true});
  }
  return questions;
}

std::vector<PartitionCase> partition_cases(const Setup& setup) {
  if (setup.own) {
    return {{setup.size("layers"), setup.size("width"), setup.size("heads"),
             setup.size("positions"), setup.text("mask") == "causal"}};
  }
  std::vector<PartitionCase> cases{{1, 4, 2, 4, false}, {2, 2, 1, 4, false}, {2, 2, 2, 4, false},
                                   {2, 3, 1, 4, false}, {2, 3, 3, 4, false}, {2, 2, 1, 6, false},
                                   {2, 2, 1, 4, true},  {2, 3, 1, 4, true},  {2, 2, 1, 6, true}};
  if (!setup.quick) {
    cases.push_back({3, 2, 1, 4, false});
    cases.push_back({2, 3, 1, 6, false});
  }
  return cases;
}

/// Causal, interleaved, of growing length: the printed bound does not depend on the length.
std::vector<RankQuestion> growing_lengths(const Setup& setup) {
  std::vector<RankQuestion> questions;
  if (setup.own) return questions;
  for (std::size_t positions = 4; positions <= 12; positions += 2) {
    RankSetting setting = attention_setting(2, 2, 1, positions);
    setting.partition = exact::parse_partition("interleaved", positions);
    setting.causal = true;
    questions.push_back({setting, true});
  }
  return questions;
}

std::vector<Part> plan_invariance(const Setup& setup) {
  if (setup.size("positions") % 2 != 0) {
    throw ConfigError(
        fmt::format("--positions must be even, not {}: a balanced partition has two "
                    "equal halves",
                    setup.size("positions")));
  }
  std::vector<RankQuestion> questions;
  for (const PartitionCase& c : partition_cases(setup)) {
    const std::vector<RankQuestion> more = all_partitions(c);
    questions.insert(questions.end(), more.begin(), more.end());
  }
  const std::vector<RankQuestion> growing = growing_lengths(setup);
  questions.insert(questions.end(), growing.begin(), growing.end());
  return rank_parts(setup, questions);
}

/// (d + H)^((3^L - 1)/2) for the networks of growing_lengths().
constexpr double kPrintedBound = 81;

void show_growth(const Setup& setup, std::span<const Json> results, Conclusion& conclusion) {
  ExhibitTable growth{
      fmt::format("Causal, interleaved, L = 2, d = 2, H = 1; the printed bound is {}",
                  kPrintedBound),
      {"positions", "rank"},
      {}};
  ExhibitChart chart{"The causal rank grows with length",
                     "positions",
                     "separation rank",
                     false,
                     false,
                     {{"rank, interleaved", {}}, {"printed bound", {}}}};
  conclusion.data["growth"] = Json::array();
  std::size_t part = 0;
  double last = 0;
  for (const RankQuestion& question : growing_lengths(setup)) {
    const exact::RankResult found = rank_result(results[part++]);
    last = static_cast<double>(found.rank);
    growth.rows.push_back({std::to_string(question.setting.positions), rank_words(found)});
    const auto positions = static_cast<double>(question.setting.positions);
    chart.series[0].dots.push_back({positions, last});
    chart.series[1].dots.push_back({positions, kPrintedBound});
    conclusion.data["growth"].push_back(
        {{"positions", question.setting.positions}, {"rank", found.rank}});
  }
  conclusion.measures.push_back({"bound", last});
  conclusion.tables.push_back(std::move(growth));
  conclusion.charts.push_back(std::move(chart));
}

Conclusion conclude_invariance(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{"Ranks over all balanced partitions",
                     {"mask", "L", "d", "H", "positions", "partitions", "ranks"},
                     {}};
  std::size_t most_free = 0;
  std::size_t most_causal = 0;
  std::size_t part = 0;
  conclusion.data["settings"] = Json::array();
  for (const PartitionCase& c : partition_cases(setup)) {
    std::map<std::size_t, std::string> ranks;  // rank -> an example
    const std::size_t count = all_partitions(c).size();
    bool known = true;
    for (const RankQuestion& question : all_partitions(c)) {
      const exact::RankResult found = rank_result(results[part++]);
      known &= found.status != exact::RankStatus::at_least;
      ranks.emplace(found.rank, question.setting.partition);
    }
    if (known) {
      (c.causal ? most_causal : most_free) =
          std::max(c.causal ? most_causal : most_free, ranks.size());
    } else {
      conclusion.notes.push_back(
          "some ranks are only known to be at least so much, so they cannot be compared; a higher "
          "--time-limit lets grids grow further");
    }
    std::vector<std::string> texts;
    Json list = Json::array();
    for (const auto& [rank, example] : ranks) {
      texts.push_back(fmt::format("{} ({})", rank, example));
      list.push_back({{"rank", rank}, {"partition", example}});
    }
    conclusion.data["settings"].push_back({{"mask", c.causal ? "causal" : "none"},
                                           {"layers", c.layers},
                                           {"width", c.width},
                                           {"heads", c.heads},
                                           {"positions", c.positions},
                                           {"ranks", list}});
    table.rows.push_back({c.causal ? "causal" : "none", std::to_string(c.layers),
                          std::to_string(c.width), std::to_string(c.heads),
                          std::to_string(c.positions), std::to_string(2 * count),
                          join(texts, ", ")});
  }
  if (most_free > 0) conclusion.measures.push_back({"free", static_cast<double>(most_free)});
  if (most_causal > 0) conclusion.measures.push_back({"causal", static_cast<double>(most_causal)});
  conclusion.tables.push_back(std::move(table));
  if (!setup.own) show_growth(setup, std::span<const Json>(results).subspan(part), conclusion);
  return conclusion;
}

// ---- residual connections

struct Shape {
  std::size_t layers, width, heads;
};

std::vector<Shape> residual_list(const Setup& setup) {
  if (setup.own) return {{setup.size("layers"), setup.size("width"), setup.size("heads")}};
  std::vector<Shape> list{{1, 2, 1}, {1, 3, 1}, {1, 4, 2}, {2, 2, 1}, {2, 3, 1},
                          {2, 4, 1}, {2, 2, 2}, {2, 4, 2}, {3, 2, 1}};
  if (!setup.quick) list.push_back({3, 2, 2});
  return list;
}

std::vector<Part> plan_residual(const Setup& setup) {
  std::vector<RankQuestion> questions;
  for (const Shape& s : residual_list(setup)) {
    for (const bool residual : {false, true}) {
      RankSetting setting = attention_setting(s.layers, s.width, s.heads);
      setting.residual = residual;
      questions.push_back({setting});
    }
  }
  return rank_parts(setup, questions);
}

Conclusion conclude_residual(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{
      "Ranks without and with residual connections", {"L", "d", "H", "without", "with"}, {}};
  double changed = 0;
  std::size_t part = 0;
  conclusion.data["settings"] = Json::array();
  for (const Shape& s : residual_list(setup)) {
    const exact::RankResult without = rank_result(results[part++]);
    const exact::RankResult with = rank_result(results[part++]);
    changed += without.rank != with.rank ? 1 : 0;
    conclusion.data["settings"].push_back({{"layers", s.layers},
                                           {"width", s.width},
                                           {"heads", s.heads},
                                           {"without", without.rank},
                                           {"with", with.rank}});
    table.rows.push_back({std::to_string(s.layers), std::to_string(s.width),
                          std::to_string(s.heads), rank_words(without), rank_words(with)});
  }
  conclusion.measures = {{"changed", changed}};
  conclusion.tables.push_back(std::move(table));
  return conclusion;
}

// ---- heads

std::vector<std::pair<std::size_t, std::size_t>> head_list(const Setup& setup) {
  if (setup.own) return {{setup.size("layers"), setup.size("width")}};
  std::vector<std::pair<std::size_t, std::size_t>> list{{2, 2}, {2, 3}, {2, 4}, {2, 6}, {3, 2}};
  if (!setup.quick) list.insert(list.end(), {{2, 8}, {2, 9}, {2, 12}, {3, 3}, {4, 2}});
  return list;
}

std::vector<std::size_t> divisors(std::size_t width) {
  std::vector<std::size_t> found;
  for (std::size_t h = 1; h <= width; ++h) {
    if (width % h == 0) found.push_back(h);
  }
  return found;
}

std::vector<Part> plan_heads(const Setup& setup) {
  std::vector<RankQuestion> questions;
  for (const auto& [layers, width] : head_list(setup)) {
    for (const std::size_t h : divisors(width)) {
      questions.push_back({attention_setting(layers, width, h)});
    }
  }
  return rank_parts(setup, questions);
}

Conclusion conclude_heads(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{"Exact rank by number of heads", {"L", "d", "rank (heads)"}, {}};
  ExhibitChart chart{"More heads, lower rank", "heads", "separation rank", true, true, {}};
  double rises = 0;
  double steps = 0;
  std::size_t part = 0;
  conclusion.data["settings"] = Json::array();
  for (const auto& [layers, width] : head_list(setup)) {
    std::vector<std::string> texts;
    ChartSeries series{fmt::format("L = {}, d = {}", layers, width), {}};
    Json list = Json::array();
    std::size_t previous = 0;
    for (const std::size_t h : divisors(width)) {
      const exact::RankResult found = rank_result(results[part++]);
      if (h > 1) {
        ++steps;
        rises += found.rank > previous ? 1 : 0;
      }
      previous = found.rank;
      texts.push_back(fmt::format("{} ({})", rank_words(found), h));
      list.push_back({{"heads", h}, {"rank", found.rank}});
      series.dots.push_back({static_cast<double>(h), static_cast<double>(found.rank)});
    }
    chart.series.push_back(std::move(series));
    conclusion.data["settings"].push_back({{"layers", layers}, {"width", width}, {"ranks", list}});
    table.rows.push_back({std::to_string(layers), std::to_string(width), join(texts, ", ")});
  }
  if (steps > 0) conclusion.measures = {{"rises", rises / steps}};
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  return conclusion;
}

std::vector<Option> shape_options(std::size_t layers, std::size_t width) {
  return {
      integer_option("layers", static_cast<std::int64_t>(layers), "L", "Depth", 1, 8),
      integer_option("width", static_cast<std::int64_t>(width), "D", "Width", 1, kMaxRankWidth)};
}

}  // namespace

Experiment invariance_experiment() {
  std::vector<Option> options = shape_options(2, 2);
  options.push_back(integer_option("heads", 1, "H", "Heads", 1, kMaxRankWidth));
  options.push_back(integer_option("positions", 4, "N", "Positions, even", 2, 16));
  options.push_back(
      text_option("mask", "none", "NAME", "Which positions a position sees", {"none", "causal"}));
  return {"partition-invariance", options, plan_invariance, conclude_invariance};
}

Experiment residual_experiment() {
  std::vector<Option> options = shape_options(2, 2);
  options.push_back(integer_option("heads", 1, "H", "Heads", 1, kMaxRankWidth));
  return {"residuals", options, plan_residual, conclude_residual};
}

Experiment head_experiment() {
  return {"heads", shape_options(2, 4), plan_heads, conclude_heads};
}

}  // namespace fathom::lab
