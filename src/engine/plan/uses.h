// Which tensors an op reads and writes: all that lifetimes and dependencies need to know of it.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "engine/plan/tensor.h"

namespace fathom::engine {

struct Uses {
  /// Ids that do not exist (optional operands) are dropped.
  Uses(std::initializer_list<TensorId> read, std::initializer_list<TensorId> written) {
    for (const TensorId id : read) {
      if (id.exists()) reads.push_back(id);
    }
    for (const TensorId id : written) {
      if (id.exists()) writes.push_back(id);
    }
  }
  /// `to` may lie on the memory of `from` if `from` is not used later and both have one shape and
  /// type: each element of `to` depends on no element of `from` but the one at its own place (or
  /// its own row).
  Uses& may_replace(TensorId from, TensorId to) {
    if (from.exists() && to.exists()) in_place.emplace_back(from, to);
    return *this;
  }

  std::vector<TensorId> reads;
  std::vector<TensorId> writes;
  std::vector<std::pair<TensorId, TensorId>> in_place;
};

}  // namespace fathom::engine
