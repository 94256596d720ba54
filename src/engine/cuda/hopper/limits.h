// Limits of sm_90.
#pragma once

namespace fathom::engine::cuda::hopper {

inline constexpr int kSharedBytes = 232448;  // of shared memory, the most a block may have

}  // namespace fathom::engine::cuda::hopper
