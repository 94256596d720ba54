#include "engine/cuda/draw.h"

#include <algorithm>

#include "engine/cuda/memory.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kMostDoubtful = 4095;

struct Doubtful {
  unsigned long long count;
  std::int64_t elements[kMostDoubtful];
};

/// A double keeps 29 bits more than a float. The libraries' results are at most 13 units in the
/// last place apart (log 1 and cos 2 units here, below 1 there, and the roundings between): a value
/// more than 64 units from the midpoint of two floats rounds the same way with both.
__device__ inline bool is_doubtful(double value) {
  const long long beyond = __double_as_longlong(value) & ((1ll << 29) - 1);
  const bool near_middle = llabs(beyond - (1ll << 28)) <= 64;
  return near_middle || (value != 0 && fabs(value) < 1e-37);  // denormal floats keep fewer bits
}

__global__ void draw_kernel(NormalDraw draw, float* values, std::int64_t size, Doubtful* doubtful) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < size;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const auto index = static_cast<std::uint64_t>(i);
    const double radius = sqrt(-2 * log(1 - draw.random.uniform(2 * index)));
    const double turn = 2 * std::numbers::pi * draw.random.uniform(2 * index + 1);
    const bool later = draw.later_begin >= 0 && i >= draw.later_begin;
    const double value = (later ? draw.later_deviation : draw.deviation) * (radius * cos(turn));
    values[i] = static_cast<float>(value);
    if (!is_doubtful(value)) continue;
    const unsigned long long place = atomicAdd(&doubtful->count, 1ull);
    if (place < kMostDoubtful) doubtful->elements[place] = i;
  }
}

}  // namespace

DrawResult draw_normal(const NormalDraw& draw, float* values, std::int64_t size) {
  const Block list(sizeof(Doubtful));
  auto* on_device = reinterpret_cast<Doubtful*>(list.data());
  const auto blocks = std::min<std::int64_t>(4096, (size + 255) / 256);
  draw_kernel<<<static_cast<unsigned>(blocks), 256>>>(draw, values, size, on_device);
  check_launch("drawing values");
  const auto found = std::make_unique<Doubtful>();
  check(cudaMemcpy(found.get(), on_device, sizeof(Doubtful), cudaMemcpyDeviceToHost),
        "drawing values");
  if (found->count > kMostDoubtful) return {};
  return {true, std::vector<std::int64_t>(found->elements, found->elements + found->count)};
}

}  // namespace fathom::engine::cuda
