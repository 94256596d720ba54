// How many threads work may use.
#pragma once

#include <algorithm>
#include <thread>

namespace fathom {

/// Hardware threads of this machine, at least one.
inline unsigned machine_threads() {
  return std::max(1u, std::thread::hardware_concurrency());
}

/// As many as asked for; 0 asks for all of them.
inline unsigned threads_or_all(unsigned asked) {
  return asked > 0 ? asked : machine_threads();
}

}  // namespace fathom
