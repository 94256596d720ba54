// Which bytes of an arena are taken at which times, to find the lowest free gap.
//
// A segment tree over time: a node holds the bytes taken during all of its interval by blocks that
// were split there (`whole`), and those taken at any moment of it (`any`), as disjoint ranges.
// Bytes taken at some time in [first, last] are then the union of `any` at the nodes that make up
// the interval and `whole` at those above them, a logarithmic number of sets. Adjacent ranges
// merge, so the sets stay small, and thousands of equal layers are placed in time nearly linear in
// their number; looking at every pair of blocks took 89 s for 4,000 layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace fathom::engine {

/// Disjoint ranges of bytes, none touching another.
class ByteRanges {
 public:
  void add(std::int64_t begin, std::int64_t end);
  /// The end of the first range that overlaps [begin, end); `begin` when none does.
  std::int64_t end_of_meeting(std::int64_t begin, std::int64_t end) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;  // sorted by begin
};

class OccupiedSpace {
 public:
  explicit OccupiedSpace(std::size_t times);

  /// Bytes [begin, end) are taken from time `first` to time `last`, both included.
  void take(std::size_t first, std::size_t last, std::int64_t begin, std::int64_t end);
  /// Appends the sets whose union is what is taken at some time from `first` to `last`.
  void find_taken(std::size_t first, std::size_t last, std::vector<const ByteRanges*>& taken) const;

 private:
  struct Node {
    ByteRanges whole, any;
  };
  Node& at(std::size_t index);
  template <class Visit>
  void for_each_above(std::size_t first, std::size_t last, const Visit& visit) const;

  std::size_t leaves_ = 1;
  std::vector<std::unique_ptr<Node>> nodes_;  // the children of i are 2 i and 2 i + 1
};

/// The lowest offset at which `bytes` bytes overlap none of the sets.
std::int64_t lowest_gap(std::int64_t bytes, const std::vector<const ByteRanges*>& taken);

}  // namespace fathom::engine
