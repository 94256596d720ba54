// Partitions of the N positions into sides A and B, written as N digits: position j is in A where
// digit j is 0 and in B where it is 1.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::exact {

/// "left-right" (0..01..1) and "interleaved" (0101..), both for even N, or N digits with both
/// sides present; ConfigError otherwise.
std::string parse_partition(std::string_view text, std::size_t positions);

/// All partitions with N/2 positions per side, in rising order; ConfigError for odd N and above 20.
std::vector<std::string> balanced_partitions(std::size_t positions);

/// A and B exchanged: the same separation rank, since the matrix is transposed.
std::string complement(std::string partition);

/// Positions whose digit is `side`.
std::vector<std::size_t> positions_of(std::string_view partition, char side);

}  // namespace fathom::exact
