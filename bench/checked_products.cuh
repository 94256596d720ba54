// What the checks of products against double precision share: random operands, guarded memory of
// the device, where results differ, and how long a call takes.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "engine/cuda/check.h"

namespace fathom::engine::cuda {

constexpr std::int64_t kGuard = 4096;
using Bits = std::uint16_t;

inline float value_of(Bits bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
inline float value_of(float value) {
  return value;
}

inline std::vector<float> random_floats(std::int64_t size, float scale, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<std::size_t>(size));
  for (auto& value : values) value = normal(generator);
  return values;
}

inline std::vector<Bits> random_bf16(std::int64_t size, float scale, unsigned seed) {
  std::vector<Bits> values;
  for (const float x : random_floats(size, scale, seed)) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    values.push_back(static_cast<Bits>(bits >> 16));
  }
  return values;
}

/// Device memory with a guard behind it, everything set to NaNs.
template <class T>
struct Memory {
  explicit Memory(std::int64_t size) : size(size) {
    check(cudaMalloc(&data, static_cast<std::size_t>(size) * sizeof(T) + kGuard), "memory");
    poison();
  }
  explicit Memory(const std::vector<T>& values) : Memory(static_cast<std::int64_t>(values.size())) {
    write(values);
  }
  ~Memory() { cudaFree(data); }
  void poison() {
    check(cudaMemset(data, 0xff, static_cast<std::size_t>(size) * sizeof(T) + kGuard), "memory");
  }
  /// As often as it fits.
  void write(const std::vector<T>& values) {
    for (std::int64_t at = 0; at < size; at += static_cast<std::int64_t>(values.size())) {
      const auto count = std::min(static_cast<std::int64_t>(values.size()), size - at);
      check(cudaMemcpy(data + at, values.data(), static_cast<std::size_t>(count) * sizeof(T),
                       cudaMemcpyHostToDevice),
            "copy");
    }
  }
  std::vector<T> read() const {
    std::vector<T> values(static_cast<std::size_t>(size));
    check(cudaMemcpy(values.data(), data, values.size() * sizeof(T), cudaMemcpyDeviceToHost),
          "read");
    return values;
  }
  bool guard_holds() const {
    std::vector<unsigned char> bytes(kGuard);
    check(cudaMemcpy(bytes.data(), reinterpret_cast<char*>(data) + size * sizeof(T), kGuard,
                     cudaMemcpyDeviceToHost),
          "read");
    for (const unsigned char byte : bytes) {
      if (byte != 0xff) return false;
    }
    return true;
  }
  T* data = nullptr;
  std::int64_t size;
};
using Halves = Memory<Bits>;
using Floats = Memory<float>;
using Bytes = Memory<std::uint8_t>;

/// Says where results differ: the first places, and how the bad ones spread over a tile's rows and
/// columns.
template <class T>
bool compare(const char* name, const std::vector<T>& got, const std::vector<double>& want,
             std::int64_t n, double relative, double absolute) {
  std::int64_t bad = 0;
  double worst = 0;
  std::vector<long> by_row(8), by_column(16);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double value = value_of(got[i]), error = std::abs(value - want[i]);
    if (std::isfinite(value)) worst = std::max(worst, error);
    if (error <= relative * std::abs(want[i]) + absolute) continue;
    const auto row = static_cast<std::int64_t>(i) / n, column = static_cast<std::int64_t>(i) % n;
    if (bad++ < 3) {
      std::printf("    %s[%ld, %ld] is %g, not %g\n", name, static_cast<long>(row),
                  static_cast<long>(column), value, want[i]);
    }
    ++by_row[static_cast<std::size_t>(row / 8 % 8)];
    ++by_column[static_cast<std::size_t>(column / 2 % 16)];
  }
  if (bad == 0) return true;
  std::printf("    %s: %ld of %zu wrong, worst %g; by row/8 mod 8:", name, static_cast<long>(bad),
              want.size(), worst);
  for (const long count : by_row) std::printf(" %ld", count);
  std::printf("; by column/2 mod 16:");
  for (const long count : by_column) std::printf(" %ld", count);
  std::printf("\n");
  return false;
}

template <class Body>
void in_parallel(std::int64_t count, const Body& body) {
  std::vector<std::thread> threads;
  const unsigned workers = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      for (std::int64_t i = w; i < count; i += workers) body(i);
    });
  }
  for (auto& thread : threads) thread.join();
}

/// Microseconds of a call, the mean of `repeats` after some that do not count.
template <class Call>
double time_call(cudaStream_t stream, int repeats, const Call& call) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int i = 0; i < repeats / 4; ++i) call();
  cudaEventRecord(begin, stream);
  for (int i = 0; i < repeats; ++i) call();
  cudaEventRecord(end, stream);
  check(cudaEventSynchronize(end), "timing");
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds * 1e3 / repeats;
}

}  // namespace fathom::engine::cuda
