#include "lab/hops/connectivity.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/random.h"

namespace fathom::lab {
namespace {

/// Fisher-Yates; uses `values.size()` numbers of the stream from `first` on.
template <class Value>
void shuffle(std::vector<Value>& values, const RandomStream& random, std::uint64_t first) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random.below(first + i, i)]);
  }
}

/// The position with the largest score -(name - wanted)^2: the edge that starts at `wanted`.
std::size_t attended(const std::vector<Edge>& edges, std::int64_t wanted) {
  std::size_t best = 0;
  for (std::size_t j = 1; j < edges.size(); ++j) {
    const std::int64_t distance = edges[j].from - wanted;
    const std::int64_t nearest = edges[best].from - wanted;
    if (distance * distance < nearest * nearest) best = j;
  }
  return best;
}

}  // namespace

std::vector<Edge> random_cycles(std::size_t vertices, bool two, std::uint64_t seed,
                                std::uint64_t index) {
  constexpr std::uint64_t kStream = 0x6379636c6573;  // "cycles"
  const RandomStream random(seed, kStream + (index << 20));
  std::vector<std::int64_t> names(vertices);
  std::iota(names.begin(), names.end(), 0);
  shuffle(names, random, 0);
  const std::size_t size = two ? vertices / 2 : vertices;
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < vertices; ++i) {
    const std::size_t begin = i / size * size;
    edges.push_back({names[i], names[begin + (i - begin + 1) % size]});
  }
  shuffle(edges, random, 2 * vertices);
  return edges;
}

std::size_t connectivity_depth(std::size_t vertices) {
  return static_cast<std::size_t>(std::bit_width(vertices - 1)) + 1;
}

bool run_connectivity(const std::vector<Edge>& edges, std::size_t layers) {
  std::vector<std::int64_t> pointers;
  std::vector<std::int64_t> least;
  for (const Edge& edge : edges) {
    pointers.push_back(edge.to);
    least.push_back(std::min(edge.from, edge.to));
  }
  for (std::size_t layer = 1; layer < layers; ++layer) {
    std::vector<std::int64_t> next_pointers;
    std::vector<std::int64_t> next_least;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const std::size_t j = attended(edges, pointers[i]);
      next_pointers.push_back(pointers[j]);
      next_least.push_back(std::min(least[i], least[j]));
    }
    pointers = std::move(next_pointers);
    least = std::move(next_least);
  }
  // The last layer attends to the largest m with one head and to the least with another.
  const auto [first, last] = std::minmax_element(least.begin(), least.end());
  return *first == *last;
}

}  // namespace fathom::lab
