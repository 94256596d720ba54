// Times the matrix products of a transformer layer on the GPU in their forms: plain, with a bias,
// with the activation or its gradient, with the bias gradient; and the column sums that the last
// saves. Shows which fusions pay at which width.
//
//   nvcc -std=c++20 -O3 -arch=sm_90a --expt-relaxed-constexpr -DFMT_HEADER_ONLY -Isrc \
//     bench/cuda_products.cu src/engine/cuda/product.cpp src/engine/ops/residual_cuda.cu \
//     -lcublasLt -o cuda_products && ./cuda_products 128 256 512
#include <cstdio>
#include <cstdlib>

#include "engine/cuda/cuda_ops.h"

using namespace fathom::engine;
using namespace fathom::engine::cuda;

namespace {

constexpr std::int64_t kRows = 65536;

void* memory(std::int64_t bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, static_cast<std::size_t>(bytes)), "memory");
  check(cudaMemset(p, 0, static_cast<std::size_t>(bytes)), "memory");
  return p;
}

/// Microseconds of one call, L2 as it is after other products.
template <class Call>
double time_call(cudaStream_t stream, const Call& call) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  call();
  cudaEventRecord(begin, stream);
  for (int i = 0; i < 20; ++i) call();
  cudaEventRecord(end, stream);
  check(cudaEventSynchronize(end), "timing");
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, begin, end);
  return milliseconds * 1e3 / 20;
}

void report(Products& products, cudaStream_t stream, const char* name, const ProductSpec& spec,
            const ProductOperands& operands, double bytes) {
  const auto product = products.get(spec, operands);
  if (!product) {
    std::printf("  %-28s not offered\n", name);
    return;
  }
  const double us = time_call(stream, [&] { product->run(operands, stream); });
  const double flops =
      2.0 * static_cast<double>(spec.m) * static_cast<double>(spec.n) * static_cast<double>(spec.k);
  std::printf("  %-28s %8.1f us %7.0f GB/s %6.0f TFLOP/s\n", name, us, bytes / us * 1e-3,
              flops / us * 1e-6);
}

}  // namespace

int main(int argc, char** argv) {
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  Products products(0, "", stream);
  for (int a = 1; a < argc; ++a) {
    const std::int64_t d = std::atoll(argv[a]);
    void* narrow = memory(kRows * d * 2);
    void* wide = memory(kRows * 4 * d * 2);
    void* other = memory(kRows * 4 * d * 2);
    void* weight = memory(4 * d * d * 4);
    void* gradient = memory(4 * d * d * 4);
    void* bias = memory(4 * d * 4);
    void* partial = memory(64 << 20);
    std::printf("width %ld\n", static_cast<long>(d));
    const double u = static_cast<double>(kRows * d * 2);
    const auto bf16 = DType::bf16;
    for (const std::int64_t outs : {3 * d, d, 4 * d}) {
      const double o = static_cast<double>(outs) / static_cast<double>(d);
      std::printf(" %ld -> %ld\n", static_cast<long>(d), static_cast<long>(outs));
      const ProductSpec forward{
          .m = kRows, .n = outs, .k = d, .transpose_b = true, .input = bf16, .result = bf16};
      const auto with = [](ProductSpec spec, Epilogue epilogue) {
        spec.epilogue = epilogue;
        return spec;
      };
      report(products, stream, "forward", forward, {narrow, weight, wide}, u * (1 + o));
      report(products, stream, "forward bias", with(forward, Epilogue::bias),
             {narrow, weight, wide, bias}, u * (1 + o));
      report(products, stream, "forward bias gelu aux", with(forward, Epilogue::gelu_aux_bias),
             {narrow, weight, wide, bias, other}, u * (1 + 2 * o));
      const ProductSpec input{.m = kRows, .n = d, .k = outs, .input = bf16, .result = bf16};
      report(products, stream, "dx", input, {wide, weight, narrow}, u * (1 + o));
      const ProductSpec up{.m = kRows, .n = outs, .k = d, .input = bf16, .result = bf16};
      report(products, stream, "dx (of the way back) gelu'", with(up, Epilogue::gelu_gradient),
             {narrow, weight, wide, nullptr, other}, u * (1 + 2 * o));
      report(products, stream, "dx (of the way back)", up, {narrow, weight, wide}, u * (1 + o));
      const ProductSpec dw{.m = outs, .n = d, .k = kRows, .transpose_a = true, .input = bf16};
      report(products, stream, "dW", dw, {wide, narrow, gradient}, u * (1 + o));
      report(products, stream, "dW db", with(dw, Epilogue::bias_gradient),
             {wide, narrow, gradient, bias}, u * (1 + o));
      const ProductSpec dw2{.m = d, .n = outs, .k = kRows, .transpose_a = true, .input = bf16};
      report(products, stream, "dW (wide in)", dw2, {narrow, wide, gradient}, u * (1 + o));
      report(products, stream, "dW db (wide in)", with(dw2, Epilogue::bias_gradient),
             {narrow, wide, gradient, bias}, u * (1 + o));
    }
    for (void* p : {narrow, wide, other, weight, gradient, bias, partial}) cudaFree(p);
  }
  return 0;
}
