// The parts of planted_truth, and what they share.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

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
  void add(const Tally& other) {
    stated += other.stated;
    held += other.held;
    span += other.span;
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

/// work(i) for i < count on all processors; every i has its own place for its results.
template <class Work>
void for_all(std::size_t count, Work&& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    });
  }
}

/// Intervals of the surface on planted worlds from `first` on, of kinds whose name contains `only`.
void count_surfaces(int worlds, int first, const std::string& only);

/// What a design costs compared with an evenly grown grid, for goals whose name begins with `only`;
/// with `rounds`, one line per world and round.
void compare_designs(int worlds, int first, const std::string& only, bool rounds);

}  // namespace fathom::fits
