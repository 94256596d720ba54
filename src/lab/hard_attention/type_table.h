// Assigns ids to lists of numbers: equal lists get equal ids, from 0 in order of appearance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fathom::lab {

class TypeTable {
 public:
  TypeTable() : slots_(1024, kEmpty) {}

  std::uint32_t number(std::span<const std::uint32_t> list);
  std::size_t size() const { return starts_.size() - 1; }

 private:
  static constexpr std::uint32_t kEmpty = 0xffffffff;

  bool equals(std::uint32_t entry, std::span<const std::uint32_t> list) const;
  void grow();

  std::vector<std::uint32_t> items_;      // all lists one after another
  std::vector<std::uint64_t> starts_{0};  // where each begins, and the end
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> slots_;  // open addressing, a power of two of them
};

}  // namespace fathom::lab
