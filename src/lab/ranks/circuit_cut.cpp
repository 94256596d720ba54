#include "lab/ranks/circuit_cut.h"

#include <algorithm>
#include <limits>

namespace fathom::lab {
namespace {

/// Least cost of a part of the circuit whose last convolution is on side A or B.
struct SideCost {
  double a = std::numeric_limits<double>::infinity();
  double b = std::numeric_limits<double>::infinity();

  double of(bool side) const { return side ? b : a; }
  double& of(bool side) { return side ? b : a; }
};

SideCost cut_below(std::string_view partition, double channels, double inputs) {
  SideCost cost;
  if (partition.size() == 1) {
    const bool side = partition.front() == '1';
    cost.of(side) = 1;
    cost.of(!side) = inputs;
    return cost;
  }
  const std::size_t half = partition.size() / 2;
  const SideCost left = cut_below(partition.substr(0, half), channels, inputs);
  const SideCost right = cut_below(partition.substr(half), channels, inputs);
  for (const bool above : {false, true}) {
    for (const bool first : {false, true}) {
      for (const bool second : {false, true}) {
        const double product = first == above && second == above ? 1 : channels;
        cost.of(above) = std::min(cost.of(above), left.of(first) * right.of(second) * product);
      }
    }
  }
  return cost;
}

}  // namespace

double least_cut(std::string_view partition, std::size_t channels, std::size_t inputs) {
  const SideCost cost =
      cut_below(partition, static_cast<double>(channels), static_cast<double>(inputs));
  return std::min(cost.a, cost.b);
}

}  // namespace fathom::lab
