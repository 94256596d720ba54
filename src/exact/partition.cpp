#include "exact/partition.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace fathom::exact {
namespace {

void require_even(std::size_t positions, std::string_view what) {
  if (positions % 2 == 0) return;
  throw ConfigError(fmt::format(
      "{} needs an even number of positions, not {}; give the partition as {} digits instead", what,
      positions, positions));
}

}  // namespace

std::string parse_partition(std::string_view text, std::size_t positions) {
  if (text == "left-right") {
    require_even(positions, "the left-right partition");
    return std::string(positions / 2, '0') + std::string(positions / 2, '1');
  }
  if (text == "interleaved") {
    require_even(positions, "the interleaved partition");
    std::string digits;
    for (std::size_t j = 0; j < positions; ++j) digits += j % 2 == 0 ? '0' : '1';
    return digits;
  }
  if (text.empty() || text.find_first_not_of("01") != std::string_view::npos) {
    throw ConfigError(fmt::format(
        "partition '{}' is neither left-right, interleaved nor a string of the digits 0 and 1.{}",
        text, did_you_mean(text, {"left-right", "interleaved"})));
  }
  if (text.size() != positions) {
    throw ConfigError(
        fmt::format("partition '{}' has {} digits for {} positions", text, text.size(), positions));
  }
  if (text.find('0') == std::string_view::npos || text.find('1') == std::string_view::npos) {
    throw ConfigError(
        fmt::format("partition '{}' leaves one side empty; use both digits 0 and 1", text));
  }
  return std::string(text);
}

std::vector<std::string> balanced_partitions(std::size_t positions) {
  require_even(positions, "a balanced partition");
  if (positions > 20) {
    throw ConfigError(
        fmt::format("{} positions have too many balanced partitions; take at most 20", positions));
  }
  std::string digits = parse_partition("left-right", positions);
  std::vector<std::string> partitions;
  do {
    partitions.push_back(digits);
  } while (std::next_permutation(digits.begin(), digits.end()));
  return partitions;
}

std::string complement(std::string partition) {
  for (char& digit : partition) digit = digit == '0' ? '1' : '0';
  return partition;
}

std::vector<std::size_t> positions_of(std::string_view partition, char side) {
  std::vector<std::size_t> positions;
  for (std::size_t j = 0; j < partition.size(); ++j) {
    if (partition[j] == side) positions.push_back(j);
  }
  return positions;
}

}  // namespace fathom::exact
