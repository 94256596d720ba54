// Which tensors an op reads and writes: all that lifetimes and dependencies need to know.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "engine/plan/tensor.h"

namespace fathom::engine {

inline bool contains(const std::vector<TensorId>& ids, TensorId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

struct Uses {
  Uses() = default;
  /// Ids that do not exist (optional operands) are dropped.
  Uses(std::initializer_list<TensorId> read, std::initializer_list<TensorId> written) {
    for (const TensorId id : read) {
      if (id.exists()) reads.push_back(id);
    }
    for (const TensorId id : written) {
      if (id.exists()) writes.push_back(id);
    }
  }
  /// `to` may take the memory of `from` if `from` is not used later and both have the same shape
  /// and type: each element of `to` depends on no element of `from` but the one at its own place
  /// (or those of its own row).
  Uses& may_replace(TensorId from, TensorId to) {
    if (from.exists() && to.exists()) in_place.emplace_back(from, to);
    return *this;
  }

  std::vector<TensorId> reads;
  std::vector<TensorId> writes;
  std::vector<std::pair<TensorId, TensorId>> in_place;
};

/// The uses of an op that runs `parts` in turn and never writes `internal` to memory.
inline Uses joined(std::initializer_list<Uses> parts, TensorId internal = {}) {
  Uses all;
  const auto add = [&](std::vector<TensorId>& ids, TensorId id) {
    if (id != internal && !contains(ids, id)) ids.push_back(id);
  };
  for (const Uses& part : parts) {
    for (const TensorId id : part.reads) {
      if (!contains(all.writes, id)) add(all.reads, id);
    }
    for (const TensorId id : part.writes) add(all.writes, id);
    for (const auto& [from, to] : part.in_place) {
      if (from != internal && to != internal) all.in_place.emplace_back(from, to);
    }
  }
  return all;
}

}  // namespace fathom::engine
