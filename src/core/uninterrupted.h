// System calls that a signal may interrupt, tried again.
#pragma once

#include <cerrno>

namespace fathom {

/// The result of `call`, which returns below 0 and sets errno when it fails; never EINTR.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace fathom
