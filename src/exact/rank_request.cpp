#include "exact/rank_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "exact/partition.h"

namespace fathom::exact {
namespace {

constexpr std::size_t kCircuitPositions = 8;

void check_sizes(const RankRequest& request) {
  if (request.width == 0) throw ConfigError("--width is required: the network's width or channels");
  if (request.layers == 0 && request.family != Family::conv) {
    throw ConfigError("--layers is required: the network's depth");
  }
  if (request.width > kMaxRankWidth || request.positions > kMaxRankWidth) {
    throw ConfigError(
        fmt::format("width and positions must be at most {} for an exact rank", kMaxRankWidth));
  }
}

std::size_t resolved_positions(const RankRequest& request) {
  if (request.positions != 0) return request.positions;
  if (request.family != Family::attention) return kCircuitPositions;
  return 2 * (request.embedding_rank != 0 ? request.embedding_rank : request.width);
}

}  // namespace

RankSetting resolve(const RankRequest& request) {
  check_sizes(request);
  RankSetting setting;
  setting.family = request.family;
  setting.layers = std::max<std::size_t>(1, request.layers);
  setting.width = request.width;
  setting.heads = request.heads;
  setting.positions = resolved_positions(request);
  setting.inputs = request.inputs != 0 ? request.inputs : request.width;
  setting.output_position = request.output_position.value_or(setting.positions - 1);
  setting.output_component = request.output_component;
  setting.causal = request.causal;
  setting.residual = request.residual;
  setting.embedding_rank = request.embedding_rank;
  setting.pooling = request.pooling;
  if (setting.positions < 2) {
    throw ConfigError(
        fmt::format("a partition needs at least 2 positions, not {}", setting.positions));
  }
  setting.partition = parse_partition(request.partition, setting.positions);
  validate(setting);
  if (setting.family == Family::conv && request.layers != 0 &&
      request.layers != setting.conv().rounds()) {
    throw ConfigError(fmt::format("{} positions are pooled in {} rounds; leave out --layers",
                                  setting.positions, setting.conv().rounds()));
  }
  return setting;
}

}  // namespace fathom::exact
