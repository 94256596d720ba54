#include "engine/plan/occupied_space.h"

#include <algorithm>
#include <bit>

namespace fathom::engine {

void ByteRanges::add(std::int64_t begin, std::int64_t end) {
  // All ranges that [begin, end) overlaps or touches become one.
  const auto first =
      std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                       [](const auto& range, std::int64_t place) { return range.second < place; });
  auto last = first;
  while (last != ranges_.end() && last->first <= end) {
    begin = std::min(begin, last->first);
    end = std::max(end, last->second);
    ++last;
  }
  if (first == last) {
    ranges_.insert(first, {begin, end});
    return;
  }
  *first = {begin, end};
  ranges_.erase(first + 1, last);
}

std::int64_t ByteRanges::end_of_meeting(std::int64_t begin, std::int64_t end) const {
  const auto found =
      std::upper_bound(ranges_.begin(), ranges_.end(), begin,
                       [](std::int64_t place, const auto& range) { return place < range.second; });
  return found != ranges_.end() && found->first < end ? found->second : begin;
}

OccupiedSpace::OccupiedSpace(std::size_t times)
    : leaves_(std::bit_ceil(std::max<std::size_t>(times, 1))), nodes_(2 * leaves_) {}

OccupiedSpace::Node& OccupiedSpace::at(std::size_t index) {
  if (!nodes_[index]) nodes_[index] = std::make_unique<Node>();
  return *nodes_[index];
}

template <class Visit>
void OccupiedSpace::for_each_above(std::size_t first, std::size_t last, const Visit& visit) const {
  std::size_t low = (first + leaves_) / 2, high = (last + leaves_) / 2;
  for (; low > 0; low /= 2, high /= 2) {
    visit(low);
    if (high != low) visit(high);
  }
}

void OccupiedSpace::take(std::size_t first, std::size_t last, std::int64_t begin,
                         std::int64_t end) {
  std::size_t low = first + leaves_, high = last + leaves_ + 1;
  const auto cover = [&](std::size_t node) {
    at(node).whole.add(begin, end);
    at(node).any.add(begin, end);
  };
  // Bottom up: [low, high) shrinks to its parents; nodes that stick out on either side are covered.
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) cover(low++);
    if (high % 2 == 1) cover(--high);
  }
  // Every node above a covered one contains an end of the interval.
  for_each_above(first, last, [&](std::size_t node) { at(node).any.add(begin, end); });
}

void OccupiedSpace::find_taken(std::size_t first, std::size_t last,
                               std::vector<const ByteRanges*>& taken) const {
  const auto add = [&](std::size_t node, const ByteRanges Node::*part) {
    if (nodes_[node]) taken.push_back(&(nodes_[node].get()->*part));
  };
  std::size_t low = first + leaves_, high = last + leaves_ + 1;
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) add(low++, &Node::any);
    if (high % 2 == 1) add(--high, &Node::any);
  }
  for_each_above(first, last, [&](std::size_t node) { add(node, &Node::whole); });
}

std::int64_t lowest_gap(std::int64_t bytes, const std::vector<const ByteRanges*>& taken) {
  std::int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const ByteRanges* ranges : taken) {
      for (std::int64_t next = 0; (next = ranges->end_of_meeting(offset, offset + bytes)) != offset;
           moved = true) {
        offset = next;
      }
    }
  }
  return offset;
}

}  // namespace fathom::engine
