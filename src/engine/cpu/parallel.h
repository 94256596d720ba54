// Work divided over the OpenMP threads that oneDNN uses too: a second pool would compete with them
// for the cores. The division depends only on the number of items and threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace fathom::engine::cpu {

/// body(begin, end) over [0, count), in contiguous ranges that start at multiples of `unit`.
template <class Body>
void parallel_ranges(int threads, std::int64_t count, std::int64_t unit, const Body& body) {
  const std::int64_t units = (count + unit - 1) / unit;
  if (threads <= 1 || units <= 1) return body(std::int64_t{0}, count);
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t part = omp_get_thread_num(), parts = omp_get_num_threads();
    const std::int64_t begin = units * part / parts * unit;
    const std::int64_t end = std::min(count, units * (part + 1) / parts * unit);
    if (begin < end) body(begin, end);
  }
}

/// body(item, thread) for every item; a thread takes items part, part + threads, ...
template <class Body>
void parallel_items(int threads, std::int64_t count, const Body& body) {
  if (threads <= 1 || count <= 1) {
    for (std::int64_t item = 0; item < count; ++item) body(item, 0);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int parts = omp_get_num_threads();
    for (std::int64_t item = omp_get_thread_num(); item < count; item += parts) {
      body(item, omp_get_thread_num());
    }
  }
}

}  // namespace fathom::engine::cpu
