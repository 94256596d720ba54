#include "lab/trained/hop_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/counts.h"

namespace fathom::lab {
namespace {

constexpr double kSolved = 0.05;  // error

struct ErrorRange {
  double mean = 0, low = INFINITY, high = -INFINITY;
};

ErrorRange error_range(const std::vector<const TrainedRun*>& runs, std::int64_t hops) {
  ErrorRange range;
  for (const TrainedRun* run : runs) {
    const double error = run->group_error(hops);
    range.mean += error / as_double(runs.size());
    range.low = std::min(range.low, error);
    range.high = std::max(range.high, error);
  }
  return range;
}

std::vector<std::size_t> all_seeds(const std::vector<const TrainedRun*>& runs) {
  std::vector<std::size_t> all(runs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::vector<std::string> error_row(const std::string& name, const HopErrors& errors,
                                   const std::string& largest) {
  std::vector<std::string> row{name};
  for (const double error : errors) row.push_back(std::isnan(error) ? "-" : percent(error));
  row.push_back(largest);
  return row;
}

}  // namespace

double mean_error(const std::vector<const TrainedRun*>& runs, Units seeds, std::int64_t hops) {
  double sum = 0;
  for (const std::size_t seed : seeds) sum += runs[seed]->group_error(hops);
  return sum / as_double(seeds.size());
}

std::int64_t largest_solved(const std::vector<const TrainedRun*>& runs, Units seeds) {
  std::int64_t solved = 0;
  while (solved < kMostHops && mean_error(runs, seeds, solved + 1) <= kSolved) ++solved;
  return solved;
}

double hop_attention(const std::vector<const TrainedRun*>& runs, Units seeds, std::int64_t layer,
                     std::size_t power) {
  double sum = 0;
  for (const std::size_t seed : seeds) {
    sum += runs[seed]->result.at("hop_attention").at(as_size(layer - 1)).at(power).get<double>();
  }
  return sum / as_double(seeds.size());
}

void show_hop_errors(const PublishedWidth& published, const ByDepth& runs, Conclusion& conclusion) {
  ExhibitTable table{fmt::format("Errors in percent by k, width {}, {} heads: ours, mean of the "
                                 "seeds; as published, dropout active; the published weights "
                                 "without dropout, where known",
                                 published.width, published.heads),
                     {"layers"},
                     {}};
  for (const int k : kPublishedHops) table.columns.push_back(std::to_string(k));
  table.columns.emplace_back("largest k");
  ExhibitChart chart{fmt::format("Error by k and depth, width {}", published.width),
                     "k",
                     "error",
                     false,
                     false,
                     {}};
  for (const auto& [layers, each] : runs) {
    HopErrors errors{};
    for (std::size_t i = 0; i < errors.size(); ++i) {
      errors[i] = error_range(each, kPublishedHops[i]).mean;
    }
    const std::size_t row = as_size(layers - 2);
    table.rows.push_back(error_row(fmt::format("{} ours", layers), errors,
                                   std::to_string(largest_solved(each, all_seeds(each)))));
    table.rows.push_back(error_row(fmt::format("{} published", layers), published.errors[row],
                                   std::to_string(published.largest_at(layers))));
    if (row < published.without_dropout.size()) {
      table.rows.push_back(error_row(fmt::format("{} published, no dropout", layers),
                                     published.without_dropout[row], "-"));
    }
    ChartSeries ours{fmt::format("{} layers", layers), {}};
    for (std::int64_t k = 1; k <= kMostHops; ++k) {
      const ErrorRange range = error_range(each, k);
      ours.dots.push_back({as_double(k), range.mean, range.low, range.high});
    }
    chart.series.push_back(std::move(ours));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

void show_small_hops(const ByDepth& runs, Conclusion& conclusion) {
  ExhibitTable table{"In miniature: errors in percent by k, 32 characters, width 32, 2 heads",
                     {"layers", "0", "1", "2", "4"},
                     {}};
  ExhibitChart chart{"Error by depth in miniature", "layers", "error", false, false, {}};
  for (const std::int64_t k : {1, 2, 4}) chart.series.push_back({fmt::format("k = {}", k), {}});
  for (const auto& [layers, each] : runs) {
    std::vector<std::string> row{std::to_string(layers)};
    std::size_t series = 0;
    for (const std::int64_t k : {0, 1, 2, 4}) {
      const ErrorRange range = error_range(each, k);
      row.push_back(percent(range.mean));
      if (k == 0) continue;
      chart.series[series++].dots.push_back({as_double(layers), range.mean, range.low, range.high});
    }
    table.rows.push_back(std::move(row));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

void show_hop_heads(const PublishedWidth& size, const ByDepth& runs, Conclusion& conclusion) {
  ExhibitTable table{fmt::format("The head that composes, width {}: largest mean attention of a "
                                 "head of the layer to the place so many hops back",
                                 size.width),
                     {"layers", "layer", "1", "2", "4", "8", "16"},
                     {}};
  for (const auto& [layers, each] : runs) {
    if (!each.front()->result.contains("hop_attention")) continue;
    for (std::int64_t layer = 1; layer <= layers; ++layer) {
      std::vector<std::string> row{std::to_string(layers), std::to_string(layer)};
      for (std::size_t power = 0; power < 5; ++power) {
        row.push_back(fmt::format("{:.2f}", hop_attention(each, all_seeds(each), layer, power)));
      }
      table.rows.push_back(std::move(row));
    }
  }
  conclusion.tables.push_back(std::move(table));
}

}  // namespace fathom::lab
