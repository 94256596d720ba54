#include "exact/rank_grid.h"

#include <fmt/format.h>

#include "core/error.h"
#include "exact/partition.h"

namespace fathom::exact {
namespace {

struct PartitionChoice {
  std::string digits;
  std::size_t output_position;
};

std::vector<std::size_t> heads_for(const RankGrid& grid, std::size_t width) {
  std::vector<std::size_t> heads = grid.heads;
  if (heads.empty()) {
    for (std::size_t h = 1; h <= width; ++h) heads.push_back(h);
  }
  std::erase_if(heads, [&](std::size_t h) { return width % h != 0; });
  return heads;
}

std::vector<PartitionChoice> partitions_for(const RankGrid& grid, std::size_t positions) {
  std::vector<PartitionChoice> choices;
  for (const std::size_t a : grid.a_positions) {
    if (a >= positions) {
      throw ConfigError(
          fmt::format("--a-positions {} leaves no position for side B of {}", a, positions));
    }
    choices.push_back({std::string(a, '0') + std::string(positions - a, '1'), 0});
  }
  if (!choices.empty()) return choices;
  for (const std::string& text :
       grid.partitions.empty() ? std::vector<std::string>{"left-right"} : grid.partitions) {
    choices.push_back({parse_partition(text, positions), positions - 1});
  }
  return choices;
}

/// Every setting the lists allow for one depth, width, embedding rank and head count.
void add_settings(const RankGrid& grid, const RankSetting& base,
                  std::vector<RankSetting>& settings) {
  const auto lengths = grid.positions.empty() ? std::vector<std::size_t>{2 * base.input_dimension()}
                                              : grid.positions;
  for (const std::size_t positions : lengths) {
    if (positions > kMaxRankWidth) {
      throw ConfigError(fmt::format("--positions must be at most {}", kMaxRankWidth));
    }
    for (const PartitionChoice& choice : partitions_for(grid, positions)) {
      RankSetting setting = base;
      setting.positions = positions;
      setting.partition = choice.digits;
      setting.output_position = choice.output_position;
      validate(setting);
      settings.push_back(setting);
    }
  }
}

void check(const RankGrid& grid) {
  if (grid.layers.empty() || grid.widths.empty()) {
    throw ConfigError("--layers and --widths are required, e.g. --layers 2 --widths 1-12");
  }
  if (!grid.partitions.empty() && !grid.a_positions.empty()) {
    throw ConfigError("--partitions and --a-positions exclude each other");
  }
  for (const std::size_t width : grid.widths) {
    if (width > kMaxRankWidth) {
      throw ConfigError(fmt::format("--widths must be at most {}", kMaxRankWidth));
    }
  }
}

}  // namespace

std::vector<RankSetting> grid_settings(const RankGrid& grid) {
  check(grid);
  const auto ranks =
      grid.embedding_ranks.empty() ? std::vector<std::size_t>{0} : grid.embedding_ranks;
  std::vector<RankSetting> settings;
  RankSetting base;
  base.causal = grid.causal;
  base.residual = grid.residual;
  for (const std::size_t layers : grid.layers) {
    for (const std::size_t width : grid.widths) {
      for (const std::size_t rank : ranks) {
        if (rank > width) continue;
        base.layers = layers;
        base.width = width;
        base.embedding_rank = rank;
        for (const std::size_t heads : heads_for(grid, width)) {
          base.heads = heads;
          add_settings(grid, base, settings);
        }
      }
    }
  }
  if (settings.empty()) throw ConfigError("no setting is left: no --heads divides any --widths");
  return settings;
}

std::vector<RankSetting> balanced_settings(const RankSetting& base, bool every_output) {
  std::vector<RankSetting> settings;
  const bool vary_output = every_output && base.family == Family::attention;
  for (std::size_t i = 0; i < (vary_output ? base.positions : 1); ++i) {
    for (const std::string& partition : balanced_partitions(base.positions)) {
      if (partition.front() == '1') continue;
      settings.push_back(base);
      settings.back().partition = partition;
      if (vary_output) settings.back().output_position = i;
    }
  }
  return settings;
}

PartitionGroups group_partitions(const std::vector<RankSetting>& settings,
                                 const std::vector<RankResult>& results, bool every_output) {
  PartitionGroups groups;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const std::string suffix =
        every_output ? fmt::format("@{}", settings[i].output_position) : std::string();
    groups[results[i].rank].push_back(settings[i].partition + suffix);
    groups[results[i].rank].push_back(complement(settings[i].partition) + suffix);
  }
  return groups;
}

}  // namespace fathom::exact
