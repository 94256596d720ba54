#include "lab/hard_attention/type_table.h"

#include <algorithm>

namespace fathom::lab {
namespace {

/// FNV-1a over words, finished by a multiply and shift.
std::uint64_t hash_of(std::span<const std::uint32_t> list) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint32_t item : list) hash = (hash ^ item) * 0x100000001b3;
  hash ^= hash >> 32;
  return hash * 0x9e3779b97f4a7c15;
}

}  // namespace

bool TypeTable::equals(std::uint32_t entry, std::span<const std::uint32_t> list) const {
  const std::uint64_t begin = starts_[entry];
  const std::uint64_t end = starts_[entry + 1];
  return end - begin == list.size() &&
         std::equal(list.begin(), list.end(), items_.begin() + static_cast<std::ptrdiff_t>(begin));
}

std::uint32_t TypeTable::number(std::span<const std::uint32_t> list) {
  const std::uint64_t hash = hash_of(list);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = (hash >> 20) & mask;
  for (; slots_[slot] != kEmpty; slot = (slot + 1) & mask) {
    const std::uint32_t entry = slots_[slot];
    if (hashes_[entry] == hash && equals(entry, list)) return entry;
  }
  const auto entry = static_cast<std::uint32_t>(size());
  slots_[slot] = entry;
  items_.insert(items_.end(), list.begin(), list.end());
  starts_.push_back(items_.size());
  hashes_.push_back(hash);
  if (2 * size() > slots_.size()) grow();
  return entry;
}

void TypeTable::grow() {
  slots_.assign(2 * slots_.size(), kEmpty);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t entry = 0; entry < size(); ++entry) {
    std::size_t slot = (hashes_[entry] >> 20) & mask;
    while (slots_[slot] != kEmpty) slot = (slot + 1) & mask;
    slots_[slot] = entry;
  }
}

}  // namespace fathom::lab
