// Training and studies under blows: killed or failed at one file-system call after the other, then
// let go on. Needs the library of faults.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fathom::attack {

/// SIGKILL at a call chosen by the seed, in `count` cases: train and study run in turn. The next
/// command must end with the bits of a run that nothing happened to, and leave no temporary file.
int kills(std::size_t count, std::uint64_t seed);

/// The call fails instead, with ENOSPC, EIO, EDQUOT or EINTR, or the wall clock steps back from
/// there on; EINTR and the clock must change nothing at all.
int faults(std::size_t count, std::uint64_t seed);

}  // namespace fathom::attack
