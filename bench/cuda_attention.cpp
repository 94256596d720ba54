// Times the attention kernels: causal, 65,536 tokens. Rates count the GEMMs of the unmasked half:
// forward 2 B H T^2 K FLOPs, backward 2.5 times that; the L2 cache is overwritten before every run.
#include <cmath>
#include <cstdio>

#include "cuda_timing.h"
#include "engine/ops/attention/cuda/attention_kernels.h"

using namespace fathom::engine;
using namespace fathom::engine::cuda;

namespace {

constexpr std::int64_t kTokens = 65536;
constexpr std::int64_t kFlushBytes = 256 << 20;

/// Milliseconds, the median of ten.
template <class Run>
double median(const Run& run, const Block& flush) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = 0; i < 13; ++i) {
    cudaMemsetAsync(flush.data(), i, static_cast<std::size_t>(flush.bytes()), nullptr);
    cudaEventRecord(begin);
    run();
    cudaEventRecord(end);
    check(cudaEventSynchronize(end), "timing");
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    if (i >= 3) times.push_back(milliseconds);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

AttentionShape shape_of(std::int64_t context, std::int64_t heads, std::int64_t key_heads,
                        std::int64_t head_size, float rotary = 0) {
  AttentionShape s{kTokens / context, context, heads, key_heads, head_size};
  s.scale = 1 / std::sqrt(static_cast<float>(head_size));
  s.rotary_base = rotary;
  return s;
}

/// One line: rates of the configuration, forward and backward.
void time_config(const char* name, const AttentionConfig& config, const Block& flush) {
  const AttentionShape& s = config.shape;
  const std::int64_t rows = s.batch * s.context, wide = s.heads * s.head_size;
  const std::int64_t bytes = config.bf16 ? 2 : 4;
  const Block qkv = random_block(rows * s.qkv_cols(), config.bf16, 1, 1);
  const Block dy = random_block(rows * wide, config.bf16, 1, 2);
  const Block y(rows * wide * bytes), d_qkv(rows * s.qkv_cols() * bytes);
  const Block stats(s.batch * s.heads * s.context * 4), sums(s.qkv_cols() * 4);
  const Block scratch(static_cast<std::int64_t>(attention_scratch_bytes(config)));
  auto* numbers = reinterpret_cast<float*>(stats.data());
  ColumnSums wanted;
  if (config.sums_columns()) wanted.to = reinterpret_cast<float*>(sums.data());
  const double forward = median(
      [&] { attention_forward(config, qkv.data(), y.data(), numbers, scratch.data(), nullptr); },
      flush);
  const double backward = median(
      [&] {
        attention_backward(config, dy.data(), qkv.data(), y.data(), numbers, d_qkv.data(),
                           scratch.data(), nullptr, wanted);
      },
      flush);
  const double flops = 2.0 * static_cast<double>(s.batch * s.heads * s.context) *
                       static_cast<double>(s.context * s.head_size);
  std::printf("T%-5ld %2ld x %-3ld %-8s forward %8.3f ms %6.1f TFLOP/s   backward %8.3f ms %6.1f\n",
              static_cast<long>(s.context), static_cast<long>(s.heads),
              static_cast<long>(s.head_size), name, forward, flops / forward * 1e-9, backward,
              2.5 * flops / backward * 1e-9);
  std::fflush(stdout);
}

}  // namespace

int main() {
  const Gpu own = find_gpu(0), generic = find_gpu(0, true);
  const Block flush(kFlushBytes);
  for (const std::int64_t context : {1024, 256}) {
    const std::int64_t heads_and_sizes[][2] = {{2, 64},  {4, 64}, {8, 64}, {12, 64},
                                               {16, 64}, {4, 32}, {8, 16}, {8, 128}};
    for (const auto& [heads, size] : heads_and_sizes) {
      const AttentionShape s = shape_of(context, heads, heads, size);
      time_config("own", configure_attention(s, true, own), flush);
      AttentionConfig other = configure_attention(s, true, generic);
      time_config("generic", other, flush);
      other.small_tiles = !other.small_tiles;
      time_config(other.small_tiles ? "small" : "large", other, flush);
    }
  }
  time_config("rotary", configure_attention(shape_of(1024, 8, 2, 64, 1e4f), true, own), flush);
  AttentionShape exact = shape_of(1024, 8, 8, 64);
  exact.batch = 8;
  time_config("f32", configure_attention(exact, false, own), flush);
  return 0;
}
