#include "engine/cpu/memory_block.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "engine/plan/arena_layout.h"

namespace fathom::engine::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{1} << 21;

[[noreturn]] void refuse(std::size_t bytes) {
  throw DeviceError("not enough memory for this model: " + std::to_string(bytes >> 20) + " MiB");
}

/// Maps one huge page more than needed and unmaps what lies before and after the aligned block.
MemoryBlock map_huge(std::size_t bytes) {
  const std::size_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* mapped =
      mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) refuse(bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t before = (kHugePage - begin % kHugePage) % kHugePage;
  char* memory = static_cast<char*>(mapped) + before;
  if (before > 0) munmap(mapped, before);
  if (before < kHugePage) munmap(memory + size, kHugePage - before);
  madvise(memory, size, MADV_HUGEPAGE);
  return MemoryBlock(memory, {size});
}

}  // namespace

void ReleaseMemory::operator()(void* memory) const {
  if (mapped > 0) {
    munmap(memory, mapped);
  } else {
    std::free(memory);
  }
}

MemoryBlock allocate_block(std::int64_t bytes) {
  const auto wanted = static_cast<std::size_t>(bytes);
  if (wanted >= kHugePage) {
    MemoryBlock block = map_huge(wanted);
    std::memset(block.get(), 0, wanted);  // faults the pages in now, not in the first step
    return block;
  }
  const auto unit = static_cast<std::size_t>(kTensorAlignment);
  const std::size_t size = (wanted / unit + 1) * unit;
  MemoryBlock block(std::aligned_alloc(unit, size));
  if (!block) refuse(size);
  std::memset(block.get(), 0, size);
  return block;
}

}  // namespace fathom::engine::cpu
