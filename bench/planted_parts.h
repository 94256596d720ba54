// The parts of planted_truth, and the tally they share.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>

namespace fathom::fits {

struct Tally {
  int stated = 0;
  int held = 0;
  double span = 0;  // sum of interval lengths
  void add(double low, double truth, double high) {
    ++stated;
    held += low <= truth && truth <= high;
    span += high - low;
  }
};
using Tallies = std::map<std::string, Tally>;

inline void print(const std::string& title, const Tallies& tallies) {
  fmt::print("{}\n", title);
  for (const auto& [name, tally] : tallies) {
    const double length = tally.span / tally.stated;
    fmt::print("  {:44} {:4} of {:4} hold the truth{}\n", name, tally.held, tally.stated,
               length < 1e9 ? fmt::format(", mean length {:.4g}", length) : "");
  }
  std::fflush(stdout);
}

/// The surface fitted to all runs: a, b, crossings, best depths, and the form.
void count_surfaces(int worlds, int first);

/// What a design costs beside an evenly grown grid; one line a world and round with `rounds`.
void compare_designs(int worlds, int first, bool rounds);

}  // namespace fathom::fits
