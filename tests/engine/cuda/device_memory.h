// What the tests of kernels share: memory of the device with a guard behind it, random operands,
// and a comparison that says where results differ.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "engine/bf16.h"
#include "engine/cuda/check.h"
#include "engine/cuda/gpu.h"

namespace fathom::engine::cuda {

constexpr std::int64_t kGuard = 4096;  // bytes behind every memory that nobody may touch
using Bits = std::uint16_t;            // of bf16

inline double value_of(Bits bits) {
  return from_bf16(bits);
}
inline double value_of(float value) {
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
  for (const float x : random_floats(size, scale, seed)) values.push_back(to_bf16(x));
  return values;
}

/// Device memory with a guard behind it, everything set to NaNs.
template <class T>
class DeviceMemory {
 public:
  explicit DeviceMemory(std::int64_t size) : size_(size) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes() + kGuard), "memory");
    data_ = static_cast<T*>(memory);
    poison();
  }
  explicit DeviceMemory(const std::vector<T>& values)
      : DeviceMemory(static_cast<std::int64_t>(values.size())) {
    write(values);
  }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  T* data() const { return data_; }
  void poison() { check(cudaMemset(data_, 0xff, bytes() + kGuard), "memory"); }
  void write(const std::vector<T>& values) {
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
          "copy");
  }
  std::vector<T> read() const {
    std::vector<T> values(static_cast<std::size_t>(size_));
    check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "read");
    return values;
  }
  bool guard_holds() const {
    std::vector<unsigned char> guard(kGuard);
    check(cudaMemcpy(guard.data(), reinterpret_cast<char*>(data_) + bytes(), guard.size(),
                     cudaMemcpyDeviceToHost),
          "read");
    return std::all_of(guard.begin(), guard.end(), [](unsigned char c) { return c == 0xff; });
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }
  T* data_ = nullptr;
  std::int64_t size_;
};
using Halves = DeviceMemory<Bits>;
using Floats = DeviceMemory<float>;
using Bytes = DeviceMemory<std::uint8_t>;

/// Fails with the first places that differ, and how the bad ones spread over a tile's rows and
/// columns.
template <class T>
void expect_near(const char* name, const std::vector<T>& got, const std::vector<double>& want,
                 std::int64_t columns, double relative, double absolute) {
  ASSERT_EQ(got.size(), want.size()) << name;
  std::int64_t bad = 0;
  std::string first;
  std::vector<std::int64_t> by_row(8), by_column(16);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double value = value_of(got[i]), error = std::abs(value - want[i]);
    if (error <= relative * std::abs(want[i]) + absolute) continue;  // a NaN is not
    const auto row = static_cast<std::int64_t>(i) / columns;
    const auto column = static_cast<std::int64_t>(i) % columns;
    if (bad++ < 3) {
      first += " [" + std::to_string(row) + ", " + std::to_string(column) + "] is " +
               std::to_string(value) + ", not " + std::to_string(want[i]) + ";";
    }
    ++by_row[static_cast<std::size_t>(row / 8 % 8)];
    ++by_column[static_cast<std::size_t>(column / 2 % 16)];
  }
  EXPECT_EQ(bad, 0) << name << " of " << want.size() << ":" << first
                    << " by row/8 mod 8: " << testing::PrintToString(by_row)
                    << ", by column/2 mod 16: " << testing::PrintToString(by_column);
}

template <class Body>
void in_parallel(std::int64_t count, const Body& body) {
  std::vector<std::jthread> threads;
  const auto workers = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  for (std::int64_t w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      for (std::int64_t i = w; i < count; i += workers) body(i);
    });
  }
}

/// Why the kernels of sm_90a cannot be tested here; empty where they can.
inline std::string why_no_hopper() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    cudaGetLastError();
    return "no CUDA: the driver sees no GPU";
  }
  return find_gpu(0).hopper ? "" : "this GPU is not of compute capability 9.0";
}
inline std::string why_no_gpu() {
  int count = 0;
  const bool any = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  cudaGetLastError();
  return any ? "" : "no CUDA: the driver sees no GPU";
}

}  // namespace fathom::engine::cuda
