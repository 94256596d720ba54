#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <map>
#include <span>

#include "core/error.h"
#include "core/text.h"
#include "exact/partition.h"
#include "lab/frame/options.h"
#include "lab/ranks/circuit_cut.h"
#include "lab/ranks/rank_experiments.h"
#include "lab/ranks/rank_parts.h"

namespace fathom::lab {
namespace {

using exact::Family;
using exact::Pooling;
using exact::RankSetting;

/// binom(n, k) in doubles; sizes here are small.
double binomial(std::size_t n, std::size_t k) {
  double value = 1;
  for (std::size_t i = 1; i <= k; ++i) {
    value = value * static_cast<double>(n - k + i) / static_cast<double>(i);
  }
  return std::round(value);
}

// ---- convolutional arithmetic circuits

struct ConvCase {
  std::size_t channels, inputs, positions;
};

std::vector<ConvCase> conv_list(const Setup& setup) {
  if (setup.own) return {{setup.size("channels"), setup.size("inputs"), setup.size("positions")}};
  std::vector<ConvCase> list{{2, 2, 4}, {3, 3, 4}, {2, 3, 8}, {3, 2, 8}, {4, 4, 8}, {2, 2, 8}};
  if (!setup.quick) list.push_back({2, 2, 16});
  return list;
}

struct ConvLook {
  const char* partition;
  Pooling pooling;
};
constexpr ConvLook kLooks[] = {{"interleaved", Pooling::contiguous},
                               {"left-right", Pooling::contiguous},
                               {"left-right", Pooling::mirror}};

double conv_prediction(const ConvCase& c, const ConvLook& look) {
  const bool all_bonds =
      std::string(look.partition) == "interleaved" || look.pooling == Pooling::mirror;
  const auto bond = static_cast<double>(std::min(c.channels, c.inputs));
  return all_bonds ? std::pow(bond, static_cast<double>(c.positions) / 2)
                   : std::min(static_cast<double>(c.channels),
                              std::pow(bond, static_cast<double>(c.positions) / 2));
}

RankQuestion conv_question(const ConvCase& c, const std::string& partition, Pooling pooling,
                           double predicted) {
  RankSetting setting;
  setting.family = Family::conv;
  setting.width = c.channels;
  setting.inputs = c.inputs;
  setting.positions = c.positions;
  setting.pooling = pooling;
  setting.partition = partition;
  return {setting, false, 0, predicted};
}

/// Circuits computed for every balanced partition, not only the two well-known ones.
std::vector<ConvCase> cut_list(const Setup& setup) {
  if (setup.own) return {};
  return {{2, 2, 8}, {3, 2, 8}, {2, 3, 8}, {3, 3, 8}};
}

/// One of each pair of complements.
std::vector<std::string> cut_partitions(const ConvCase& c) {
  std::vector<std::string> partitions = exact::balanced_partitions(c.positions);
  std::erase_if(partitions, [](const std::string& partition) { return partition[0] != '0'; });
  return partitions;
}

std::vector<Part> plan_conv(const Setup& setup) {
  const std::size_t positions = setup.size("positions");
  if (!std::has_single_bit(positions)) {
    throw ConfigError(fmt::format(
        "--positions must be a power of two, not {}: the circuit pools pairs", positions));
  }
  std::vector<RankQuestion> questions;
  for (const ConvCase& c : conv_list(setup)) {
    for (const ConvLook& look : kLooks) {
      questions.push_back(conv_question(c, exact::parse_partition(look.partition, c.positions),
                                        look.pooling, conv_prediction(c, look)));
    }
  }
  for (const ConvCase& c : cut_list(setup)) {
    for (const std::string& partition : cut_partitions(c)) {
      questions.push_back(conv_question(c, partition, Pooling::contiguous,
                                        least_cut(partition, c.channels, c.inputs)));
    }
  }
  return rank_parts(setup, questions);
}

/// Every balanced partition: how often each rank occurs, and whether it is the least cut.
void show_cuts(const Setup& setup, std::span<const Json> results, Conclusion& conclusion) {
  ExhibitTable table{
      "All balanced partitions of 8 positions, one of each pair of complements",
      {"channels r", "inputs M", "partitions", "rank (partitions)", "not the least cut"},
      {}};
  double all_wrong = 0;
  std::size_t part = 0;
  conclusion.data["partitions"] = Json::array();
  for (const ConvCase& c : cut_list(setup)) {
    std::map<std::size_t, std::size_t> ranks;  // rank -> partitions
    double wrong = 0;
    const std::vector<std::string> partitions = cut_partitions(c);
    for (const std::string& partition : partitions) {
      const exact::RankResult found = rank_result(results[part++]);
      ++ranks[found.rank];
      const double cut = least_cut(partition, c.channels, c.inputs);
      wrong += static_cast<double>(found.rank) != cut ? 1 : 0;
      conclusion.data["partitions"].push_back({{"channels", c.channels},
                                               {"inputs", c.inputs},
                                               {"partition", partition},
                                               {"rank", found.rank},
                                               {"least_cut", cut}});
    }
    std::vector<std::string> texts;
    for (const auto& [rank, count] : ranks) texts.push_back(fmt::format("{} ({})", rank, count));
    table.rows.push_back({std::to_string(c.channels), std::to_string(c.inputs),
                          std::to_string(partitions.size()), join(texts, ", "),
                          fmt::format("{:g}", wrong)});
    all_wrong += wrong;
  }
  conclusion.measures.push_back({"partitions", all_wrong});
  conclusion.tables.push_back(std::move(table));
}

Conclusion conclude_conv(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{"Convolutional arithmetic circuits: rank (formula)",
                     {"channels r", "inputs M", "positions N", "interleaved", "left-right",
                      "left-right, mirror pooling"},
                     {}};
  double wrong = 0;
  std::size_t part = 0;
  conclusion.data["settings"] = Json::array();
  for (const ConvCase& c : conv_list(setup)) {
    std::vector<std::string> row{std::to_string(c.channels), std::to_string(c.inputs),
                                 std::to_string(c.positions)};
    for (const ConvLook& look : kLooks) {
      const exact::RankResult found = rank_result(results[part++]);
      const double predicted = conv_prediction(c, look);
      wrong += static_cast<double>(found.rank) != predicted ? 1 : 0;
      row.push_back(fmt::format("{} ({:g})", rank_words(found), predicted));
      conclusion.data["settings"].push_back(
          {{"channels", c.channels},
           {"inputs", c.inputs},
           {"positions", c.positions},
           {"partition", look.partition},
           {"pooling", look.pooling == Pooling::mirror ? "mirror" : "contiguous"},
           {"rank", found.rank},
           {"predicted", predicted}});
    }
    table.rows.push_back(std::move(row));
  }
  conclusion.measures = {{"wrong", wrong}};
  conclusion.tables.push_back(std::move(table));
  if (!setup.own) show_cuts(setup, std::span<const Json>(results).subspan(part), conclusion);
  return conclusion;
}

// ---- recurrent arithmetic circuits

struct RecurrentCase {
  std::size_t layers, channels, inputs, positions;
};

/// As published: the rank for one layer, a lower bound for more.
double recurrent_rank(const RecurrentCase& c) {
  const std::size_t half = c.positions / 2;
  if (c.layers > 1) return binomial(std::min(c.inputs, c.channels) + half - 1, half);
  return std::min(static_cast<double>(c.channels),
                  std::pow(static_cast<double>(c.inputs), static_cast<double>(half)));
}

std::vector<RecurrentCase> recurrent_list(const Setup& setup) {
  if (setup.own) {
    return {{setup.size("layers"), setup.size("channels"), setup.size("inputs"),
             setup.size("positions")}};
  }
  std::vector<RecurrentCase> list;
  for (const std::size_t layers : {1, 2}) {
    list.insert(list.end(), {{layers, 2, 2, 4},
                             {layers, 3, 2, 4},
                             {layers, 3, 3, 4},
                             {layers, 2, 2, 6},
                             {layers, 3, 3, 6},
                             {layers, 4, 3, 6}});
  }
  if (!setup.quick) list.push_back({2, 3, 3, 8});
  return list;
}

std::vector<Part> plan_recurrent(const Setup& setup) {
  std::vector<RankQuestion> questions;
  for (const RecurrentCase& c : recurrent_list(setup)) {
    if (c.positions % 2 != 0) {
      throw ConfigError(
          fmt::format("--positions must be even, not {}: the first and the second "
                      "half are compared",
                      c.positions));
    }
    RankSetting setting;
    setting.family = Family::recurrent;
    setting.layers = c.layers;
    setting.width = c.channels;
    setting.inputs = c.inputs;
    setting.positions = c.positions;
    setting.partition = exact::parse_partition("left-right", c.positions);
    questions.push_back({setting, false, 0, recurrent_rank(c)});
  }
  return rank_parts(setup, questions);
}

Conclusion conclude_recurrent(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{"Recurrent arithmetic circuits, Start-End partition",
                     {"depth", "channels R", "inputs M", "length T", "rank", "published"},
                     {}};
  double shallow_wrong = 0;
  double deep_low = 0;
  bool shallow = false;
  bool deep = false;
  const std::vector<RecurrentCase> list = recurrent_list(setup);
  conclusion.data["settings"] = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const RecurrentCase& c = list[i];
    const exact::RankResult found = rank_result(results[i]);
    const auto rank = static_cast<double>(found.rank);
    const bool one = c.layers == 1;
    const double published = recurrent_rank(c);
    if (one) {
      shallow = true;
      shallow_wrong += rank != published ? 1 : 0;
    } else {
      deep = true;
      deep_low += rank < published ? 1 : 0;
    }
    conclusion.data["settings"].push_back({{"layers", c.layers},
                                           {"channels", c.channels},
                                           {"inputs", c.inputs},
                                           {"positions", c.positions},
                                           {"rank", found.rank},
                                           {"published", published}});
    table.rows.push_back(
        {std::to_string(c.layers), std::to_string(c.channels), std::to_string(c.inputs),
         std::to_string(c.positions), rank_words(found),
         one ? fmt::format("{:g}", published) : fmt::format("at least {:g}", published)});
  }
  if (shallow) conclusion.measures.push_back({"shallow", shallow_wrong});
  if (deep) conclusion.measures.push_back({"deep", deep_low});
  conclusion.tables.push_back(std::move(table));
  return conclusion;
}

std::vector<Option> circuit_options() {
  return {integer_option("channels", 3, "R", "Channels", 1, 64),
          integer_option("inputs", 3, "M", "Dimension of the inputs", 1, 64)};
}

}  // namespace

Experiment convnet_experiment() {
  std::vector<Option> options = circuit_options();
  options.push_back(integer_option("positions", 8, "N", "Positions, a power of two", 2, 64));
  return {"convnet-rank", options, plan_conv, conclude_conv};
}

Experiment recurrent_experiment() {
  std::vector<Option> options = circuit_options();
  options.push_back(integer_option("positions", 6, "T", "Length, even", 2, 64));
  options.push_back(integer_option("layers", 2, "L", "Depth", 1, 3));
  return {"recurrent-rank", options, plan_recurrent, conclude_recurrent};
}

}  // namespace fathom::lab
