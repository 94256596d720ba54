// Checks the products of fused_product.h against their definition in double precision, then times
// them beside what they replace: a cuBLASLt product and the activation's own kernels.
//
//   nvcc -std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -Isrc \
//     bench/cuda_fused_products.cu \
//     $(find build/release/src/engine/CMakeFiles/fathom_cuda.dir -name '*.o') \
//     build/release/src/engine/libfathom_engine.a build/release/src/core/libfathom_core.a \
//     -lcublasLt -lfmt -lcuda -o cuda_fused_products
//   ./cuda_fused_products check && ./cuda_fused_products 128 256 512
//
// `check NAME` checks only the variants whose names begin so, and tells on stderr where it is.
#include <cstdlib>
#include <string>
#include <vector>

#include "checked_products.cuh"
#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/fused_product.h"

using namespace fathom::engine;
using namespace fathom::engine::cuda;

namespace {

constexpr std::int64_t kTokens = 65536;
constexpr ActivationKind kKinds[] = {ActivationKind::relu, ActivationKind::gelu,
                                     ActivationKind::gelu_tanh};
constexpr const char* kKindNames[] = {"relu", "gelu", "gelu_tanh"};

double activated(ActivationKind kind, double u) {
  if (kind == ActivationKind::relu) return u > 0 ? u : 0;
  if (kind == ActivationKind::gelu) return u * 0.5 * (1 + std::erf(u * M_SQRT1_2));
  return 0.5 * u * (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
}

double slope_of(ActivationKind kind, double u) {
  if (kind == ActivationKind::relu) return u > 0 ? 1 : 0;
  if (kind == ActivationKind::gelu) {
    return 0.5 * (1 + std::erf(u * M_SQRT1_2)) + u * std::exp(-0.5 * u * u) / std::sqrt(2 * M_PI);
  }
  const double k = std::sqrt(2 / M_PI), t = std::tanh(k * (u + 0.044715 * u * u * u));
  return 0.5 * (1 + t) + 0.5 * u * (1 - t * t) * k * (1 + 3 * 0.044715 * u * u);
}

/// Where the slope of an element lies, see fused_product.h.
std::size_t slope_place(std::int64_t row, std::int64_t column, std::int64_t n) {
  const std::int64_t tile = row / 64 * (n / 128) + column / 128, r = row % 64, c = column % 128;
  const std::int64_t thread = r / 16 * 32 + r % 8 * 4 + c % 8 / 2;
  const std::int64_t byte = c / 8 % 4 * 4 + r % 16 / 8 * 2 + c % 2;
  return static_cast<std::size_t>(tile * 8192 + c / 32 * 2048 + thread * 16 + byte);
}

double worst_code = 0;  // of all checks

/// Codes of slopes may be off by half a step, and by a whole one for the error of the sums (rounded
/// to bf16 in the streamed form) and of the hardware's tanh.
bool compare_slopes(const std::vector<std::uint8_t>& got, const std::vector<double>& want,
                    std::int64_t n) {
  std::int64_t bad = 0;
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / n, column = static_cast<std::int64_t>(i) % n;
    const double code = got[slope_place(row, column, n)];
    const double error = std::abs(code - (want[i] * kSlopeSteps + kSlopeZero));
    if (error > worst) worst = error;
    if (!(error > 1.5)) continue;
    if (bad++ < 4) {
      std::printf("    slope[%ld, %ld] is %g, not %g\n", static_cast<long>(row),
                  static_cast<long>(column), (code - kSlopeZero) / kSlopeSteps, want[i]);
    }
  }
  worst_code = std::max(worst_code, worst);
  if (bad > 0) std::printf("    %ld slopes wrong, worst %g\n", static_cast<long>(bad), worst);
  return bad == 0;
}

/// Every variant of one shape. Returns how many are wrong.
int check_shape(const FusedSpec& spec, bool with_bias, const std::string& only,
                int multiprocessors) {
  const std::int64_t m = spec.m, n = spec.n, k = spec.k;
  const auto a = random_bf16(m * k, 1, 1), b = random_bf16(n * k, 1 / std::sqrt(double(k)), 2);
  const auto bias_bits = random_bf16(n, 0.5, 4);
  std::vector<float> bias(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = with_bias ? value_of(bias_bits[i]) : 0;
  std::vector<std::uint8_t> given(static_cast<std::size_t>(m * n));
  std::mt19937 generator(3);
  for (auto& code : given) code = static_cast<std::uint8_t>(generator() >> 24);
  std::vector<double> out(given.size()), slopes(given.size()), sums(bias.size());
  std::vector<double> right(b.size());  // b as [n, k]
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < k; ++i) {
      right[j * k + i] = value_of(spec.backward ? b[i * n + j] : b[j * k + i]);
    }
  }
  in_parallel(m, [&](std::int64_t row) {
    std::vector<double> left(static_cast<std::size_t>(k));
    for (std::int64_t i = 0; i < k; ++i) left[i] = value_of(a[row * k + i]);
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += left[i] * right[j * k + i];
      const double code = given[slope_place(row, j, n)];
      slopes[row * n + j] = slope_of(spec.kind, sum + bias[j]);
      out[row * n + j] = spec.backward ? sum * (code - kSlopeZero) / kSlopeSteps
                                       : activated(spec.kind, sum + bias[j]);
      // Relu's slope jumps where the sum's error decides its sign.
      if (!spec.backward && spec.kind == ActivationKind::relu && std::abs(sum + bias[j]) < 2e-2) {
        slopes[row * n + j] = std::nan("");
      }
    }
  });
  for (std::int64_t i = 0; i < m * n; ++i) sums[i % n] += out[i];

  const Halves a_memory(a), b_memory(b);
  Halves result(m * n);
  Bytes codes(m * n);
  const Floats bias_memory(bias);
  int wrong = 0;
  for (const FusedVariant& variant : FusedProduct::variants(spec)) {
    if (!variant.name().starts_with(only)) continue;
    if (!only.empty()) {
      std::fprintf(stderr, "%s: %s\n", spec.name().c_str(), variant.name().c_str());
    }
    result.poison();
    codes.poison();
    if (spec.backward) {
      check(cudaMemcpy(codes.data, given.data(), given.size(), cudaMemcpyHostToDevice), "copy");
    }
    const FusedProduct fused(spec,
                             {a_memory.data, b_memory.data, with_bias ? bias_memory.data : nullptr,
                              codes.data, result.data},
                             variant, multiprocessors);
    Floats partial(fused.parts() * n), total(n);
    fused.run(partial.data, nullptr);
    check(cudaDeviceSynchronize(), "fused product");
    const auto first = result.read();
    const auto first_codes = codes.read();
    bool right_results = compare("out", first, out, n, 0.004, 0.002);
    if (spec.backward) {
      reduce_parts(partial.data, fused.parts(), n, total.data, 1, false, nullptr);
      const auto column_sums = total.read();
      double worst = 0;
      std::int64_t at = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        const double error = std::abs(column_sums[j] - sums[j]);
        if (!(error <= worst)) worst = error, at = j;
      }
      const double allowed = 2e-3 * std::sqrt(double(m));
      if (!(worst <= allowed)) {
        right_results = false;
        std::printf("    sum of column %ld is %g, not %g\n", static_cast<long>(at), column_sums[at],
                    sums[at]);
      }
    } else {
      right_results &= compare_slopes(first_codes, slopes, n);
    }
    fused.run(partial.data, nullptr);
    check(cudaDeviceSynchronize(), "fused product");
    const bool again = first == result.read() && first_codes == codes.read();
    const bool guards = codes.guard_holds() && result.guard_holds() && partial.guard_holds();
    if (right_results && again && guards) continue;
    ++wrong;
    std::printf("  WRONG %s %ldx%ldx%ld %s bias %d, variant %s:%s%s%s\n",
                spec.backward ? "backward" : "forward", static_cast<long>(m), static_cast<long>(n),
                static_cast<long>(k), kKindNames[static_cast<int>(spec.kind)], with_bias,
                variant.name().c_str(), right_results ? "" : " values",
                again ? "" : " not repeated", guards ? "" : " wrote behind the end");
  }
  return wrong;
}

int check_all(const std::string& only, int multiprocessors) {
  struct Shape {
    std::int64_t m, n, k;
  };
  const Shape shapes[] = {{64, 128, 64},    {128, 128, 128}, {64, 128, 40},    {192, 384, 72},
                          {1024, 512, 128}, {320, 384, 192}, {576, 1024, 256}, {704, 2048, 512},
                          {832, 384, 488},  {9024, 256, 64}, {64, 128, 264},   {448, 640, 1000}};
  int wrong = 0, count = 0;
  for (const bool backward : {false, true}) {
    for (const Shape& s : shapes) {
      for (const ActivationKind kind : kKinds) {
        for (const bool with_bias : {true, false}) {
          if ((backward || !with_bias) && kind != ActivationKind::relu) continue;
          if (backward && with_bias) continue;
          const FusedSpec spec{s.m, s.n, s.k, kind, backward};
          const int bad = check_shape(spec, with_bias, only, multiprocessors);
          if (bad > 0 && (wrong += bad) > 6) {
            std::printf("stopped after %d cases\n", count);
            return wrong;
          }
          ++count;
        }
      }
    }
    std::printf("%s: %d cases so far, %d wrong\n", backward ? "backward" : "forward", count, wrong);
    std::fflush(stdout);
  }
  std::printf("codes of slopes are at most %.2f from the slopes\n", worst_code);
  return wrong;
}

/// [rows, cols] of random numbers, a million of them repeated.
void fill(Halves& memory, unsigned seed) {
  const auto values = random_bf16(1 << 20, 1, seed);
  for (std::int64_t at = 0; at < memory.size; at += 1 << 20) {
    const auto count = std::min<std::int64_t>(1 << 20, memory.size - at);
    check(cudaMemcpy(memory.data + at, values.data(), static_cast<std::size_t>(count) * 2,
                     cudaMemcpyHostToDevice),
          "copy");
  }
}

void time_width(std::int64_t d, ActivationKind kind, Products& products, int multiprocessors,
                cudaStream_t stream) {
  const std::int64_t wide = 4 * d;
  Halves narrow(kTokens * d), weight(wide * d), pre(kTokens * wide), out(kTokens * wide);
  Floats bias(wide), sums(wide);
  Bytes codes(kTokens * wide);
  fill(narrow, 1), fill(weight, 2), fill(pre, 3);
  check(cudaMemset(bias.data, 0, static_cast<std::size_t>(wide) * 4), "memory");

  StepPlan plan;
  const TensorId u = plan.input("u", DType::bf16, kTokens, wide);
  const TensorId y = plan.input("y", DType::bf16, kTokens, wide);
  const TensorId b = plan.input("b", DType::f32, 1, wide);
  const TensorId slopes = plan.input("slopes", DType::u8, kTokens, wide);
  const auto scratch = std::make_shared<Scratch>();
  const Context context{plan,
                        products,
                        scratch,
                        nullptr,
                        multiprocessors,
                        [&](TensorId id) -> void* {
                          if (id == u) return pre.data;
                          if (id == y) return out.data;
                          if (id == slopes) return codes.data;
                          return id == b ? bias.data : nullptr;
                        },
                        [](TensorId) -> const void* { return nullptr; },
                        [b](TensorId) { return b; },
                        [](std::int64_t) -> void* { return nullptr; },
                        [](const SideWork&) {},
                        [] { return std::shared_ptr<Scratch>(); },
                        [](const std::function<void()>&) {}};
  const BoundOp activate = bind(Activation{u, y, kind, slopes}, context);
  const BoundOp backward = bind_with_sums(
      ActivationBackward{y, {}, y, GradMode::overwrite, kind, slopes}, sums.data, false, context);
  Floats partial(std::max<std::int64_t>(scratch->bytes() / 4, multiprocessors * wide));
  scratch->place(partial.data);
  const auto bf16 = DType::bf16;
  const ProductSpec specs[2] = {
      {.m = kTokens, .n = wide, .k = d, .transpose_b = true, .input = bf16, .result = bf16},
      {.m = kTokens, .n = wide, .k = d, .input = bf16, .result = bf16}};
  for (const bool back : {false, true}) {
    const ProductOperands operands{narrow.data, weight.data, back ? out.data : pre.data};
    const auto product = products.get(specs[back], operands);
    const BoundOp& rest = back ? backward : activate;
    const double bare = time_call(stream, 20, [&] { product->run(operands, stream); });
    const double alone = time_call(stream, 20, [&] { rest(stream); });
    const double both = time_call(stream, 20, [&] {
      product->run(operands, stream);
      rest(stream);
    });
    const double bytes = static_cast<double>(kTokens * (2 * d + 3 * wide));
    std::printf("%s width %ld %s: product %.1f, activation %.1f, both %.1f us; floor %.1f us\n",
                back ? "backward" : "forward", static_cast<long>(d),
                kKindNames[static_cast<int>(kind)], bare, alone, both, bytes / 4.2e6);
    const FusedSpec spec{kTokens, wide, d, kind, back};
    for (const FusedVariant& variant : FusedProduct::variants(spec)) {
      const FusedProduct fused(spec, {narrow.data, weight.data, bias.data, codes.data, out.data},
                               variant, multiprocessors);
      const double us = time_call(stream, 20, [&] {
        fused.run(partial.data, stream);
        if (back) reduce_parts(partial.data, fused.parts(), wide, sums.data, 1, false, stream);
      });
      std::printf("  %s: %.1f us, %.2fx\n", variant.name().c_str(), us, both / us);
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "device");
  if (argc > 1 && std::string(argv[1]) == "check") {
    return check_all(argc > 2 ? argv[2] : "", multiprocessors) > 0;
  }
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  Products products(0, "", stream);
  auto kind = ActivationKind::gelu_tanh;
  for (int i = 1; i < argc; ++i) {
    bool named = false;
    for (const ActivationKind each : kKinds) {
      if (std::string(argv[i]) != kKindNames[static_cast<int>(each)]) continue;
      kind = each;
      named = true;
    }
    if (!named) time_width(std::atoll(argv[i]), kind, products, multiprocessors, stream);
  }
  return 0;
}
