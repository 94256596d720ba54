// One cycle of n vertices or two of n/2: the hardest case of connectivity, by pointer doubling.
//
// A token is an edge u -> v with random vertex names. Layer 1 attends to the edge that starts where
// this one ends; layer t + 1 composes: with p the name 2^t steps ahead and m the least name met so
// far, p <- p at p, m <- min(m, m at p). After ceil(log2 n) layers m is the least name of the whole
// cycle, and one more layer compares the largest m with the least, one head for each: hard
// attention on integers, ceil(log2 n) + 1 layers of constant width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fathom::lab {

struct Edge {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// `vertices` edges in random order with random distinct names; two cycles of half the size or one.
std::vector<Edge> random_cycles(std::size_t vertices, bool two, std::uint64_t seed,
                                std::uint64_t index);

/// Layers that pointer doubling takes.
std::size_t connectivity_depth(std::size_t vertices);

/// Whether the network of `layers` layers finds the graph connected.
bool run_connectivity(const std::vector<Edge>& edges, std::size_t layers);

}  // namespace fathom::lab
