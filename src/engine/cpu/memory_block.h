// A zeroed block of memory for a plan's storage or the scratch of its ops. Large blocks are mapped
// separately, aligned for huge pages: a GEMM that walks down columns touches a new small page with
// every row. The system may refuse huge pages; nothing depends on them.
#pragma once

#include <cstdint>
#include <memory>

namespace fathom::engine::cpu {

struct ReleaseMemory {
  std::size_t mapped = 0;  // bytes of a mapping; 0: from the heap
  void operator()(void* memory) const;
};
using MemoryBlock = std::unique_ptr<void, ReleaseMemory>;

/// At least `bytes`, aligned for tensors; DeviceError when there is not enough.
MemoryBlock allocate_block(std::int64_t bytes);

}  // namespace fathom::engine::cpu
