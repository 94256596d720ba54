// Checks the products of row_product.h against their definition in double precision, then times
// them beside what they replace: a cuBLASLt product and the norm's own kernels.
//
//   nvcc -std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -Isrc \
//     bench/cuda_row_products.cu \
//     $(find build/release/src/engine/CMakeFiles/fathom_cuda.dir -name '*.o') \
//     build/release/src/engine/libfathom_engine.a build/release/src/core/libfathom_core.a \
//     -lcublasLt -lfmt -lcuda -o cuda_row_products
//   ./cuda_row_products check [forward | backward] [resident | streamed]
//   ./cuda_row_products 128 256
//   ncu -k regex:row_kernel ./cuda_row_products once 256
#include <cstdlib>
#include <string>
#include <vector>

#include "checked_products.cuh"
#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/row_product.h"

using namespace fathom::engine;
using namespace fathom::engine::cuda;

namespace {

constexpr std::int64_t kTokens = 65536;
constexpr float kEpsilon = 1e-5f;
int repeats = 20;
struct Case {
  RowSpec spec;
  float stream_scale = 1, branch_scale = 1;
  bool in_place = true;  // forward: r on x; backward: dx on incoming
  bool rest = true;      // biases; backward: d_branch as well
};

/// Every variant of one shape. Returns how many are wrong.
int check_case(const Case& each, const std::string& kind, int multiprocessors) {
  const RowSpec& spec = each.spec;
  const std::int64_t m = spec.m, d = spec.d, k = spec.k;
  const float width = static_cast<float>(d);
  const auto a = random_bf16(m * k, 1, 1), b = random_bf16(d * k, 1 / std::sqrt(float(k)), 2);
  const auto x = random_floats(m * d, 1, 3), bias = random_floats(d, 0.5, 4);
  auto gain = random_floats(d, 0.2f, 5);
  const auto shift = random_floats(d, 0.5, 6);
  const auto incoming = random_bf16(m * d, 1, 7);
  for (float& value : gain) value += 1;
  std::vector<double> right(b.size());  // b as [d, k]
  for (std::int64_t j = 0; j < d; ++j) {
    for (std::int64_t i = 0; i < k; ++i) {
      right[j * k + i] = value_of(spec.backward ? b[i * d + j] : b[j * k + i]);
    }
  }
  // Forward: r, y, stats. Backward: dx, d_branch; x is r, its statistics are true ones.
  std::vector<double> r(static_cast<std::size_t>(m * d)), y(r.size()), dx(r.size()),
      branch(r.size()), stats(static_cast<std::size_t>(2 * m)), dy(r.size()), dyh(r.size());
  std::vector<float> given_stats(stats.size());
  in_parallel(m, [&](std::int64_t row) {
    std::vector<double> left(static_cast<std::size_t>(k)), product(static_cast<std::size_t>(d));
    for (std::int64_t i = 0; i < k; ++i) left[i] = value_of(a[row * k + i]);
    double mean = 0, square = 0, mean_g = 0, mean_gh = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      for (std::int64_t i = 0; i < k; ++i) product[j] += left[i] * right[j * k + i];
      const std::int64_t at = row * d + j;
      r[at] = x[at];
      if (!spec.backward) {
        r[at] = each.stream_scale * r[at] +
                each.branch_scale * (product[j] + (each.rest ? bias[j] : 0));
      }
      mean += r[at] / width;
    }
    if (spec.rms) mean = 0;
    for (std::int64_t j = 0; j < d; ++j)
      square += (r[row * d + j] - mean) * (r[row * d + j] - mean);
    const double s = 1 / std::sqrt(square / width + kEpsilon);
    stats[2 * row] = mean;
    stats[2 * row + 1] = s;
    given_stats[2 * row] = static_cast<float>(mean);
    given_stats[2 * row + 1] = static_cast<float>(s);
    for (std::int64_t j = 0; j < d; ++j) {
      const double h = (r[row * d + j] - mean) * s;
      y[row * d + j] = h * gain[j] + (each.rest ? shift[j] : 0);
      dy[row * d + j] = product[j];
      dyh[row * d + j] = product[j] * h;
      mean_g += spec.rms ? 0 : product[j] * gain[j] / width;
      mean_gh += product[j] * gain[j] * h / width;
    }
    for (std::int64_t j = 0; j < d; ++j) {
      const double h = (r[row * d + j] - mean) * s;
      const double dr =
          value_of(incoming[row * d + j]) + s * (product[j] * gain[j] - mean_g - h * mean_gh);
      dx[row * d + j] = each.stream_scale * dr;
      branch[row * d + j] = each.branch_scale * dr;
    }
  });
  std::vector<double> column_sums(static_cast<std::size_t>(3 * d));
  for (std::int64_t i = 0; i < m * d; ++i) {
    column_sums[i % d] += dyh[i];
    column_sums[d + i % d] += dy[i];
    column_sums[2 * d + i % d] += branch[i];
  }

  const Halves a_memory(a), b_memory(b);
  const Floats gain_memory(gain), shift_memory(shift), bias_memory(bias);
  int wrong = 0;
  for (const RowVariant& variant : RowProduct::variants(spec)) {
    if (variant.name().find(kind) == std::string::npos) continue;
    std::fprintf(stderr, "%s, %s\n", spec.name().c_str(), variant.name().c_str());
    Floats x_memory(x), r_memory(m * d), stats_memory(2 * m);
    Halves y_memory(m * d), incoming_memory(incoming), dx_memory(m * d), branch_memory(m * d);
    RowOperands operands{.a = a_memory.data,
                         .b = b_memory.data,
                         .gain = gain_memory.data,
                         .stats = stats_memory.data,
                         .r = each.in_place || spec.backward ? x_memory.data : r_memory.data,
                         .stream_scale = each.stream_scale,
                         .branch_scale = each.branch_scale,
                         .x = x_memory.data,
                         .shift = each.rest ? shift_memory.data : nullptr,
                         .bias = each.rest ? bias_memory.data : nullptr,
                         .y = y_memory.data,
                         .epsilon = kEpsilon};
    if (spec.backward) {
      stats_memory.write(given_stats);
      operands.incoming = incoming_memory.data;
      operands.dx = each.in_place ? incoming_memory.data : dx_memory.data;
      if (each.rest) operands.d_branch = branch_memory.data;
    }
    const RowProduct product(spec, operands, variant, multiprocessors);
    Floats partial(std::max<std::int64_t>(1, product.parts() * product.sums() * d));
    product.run(partial.data, nullptr);
    check(cudaDeviceSynchronize(), "row product");
    bool values = true;
    std::vector<Bits> halves[2];
    if (spec.backward) {
      Halves& out = operands.dx == dx_memory.data ? dx_memory : incoming_memory;
      values &= compare("dx", halves[0] = out.read(), dx, d, 0.004, 1e-3);
      if (operands.d_branch) {
        values &= compare("d_branch", halves[1] = branch_memory.read(), branch, d, 0.004, 1e-3);
      }
      const auto parts = partial.read();
      std::vector<float> total(static_cast<std::size_t>(product.sums() * d));
      for (std::size_t i = 0; i < parts.size(); ++i) total[i % total.size()] += parts[i];
      column_sums.resize(total.size());
      values &= compare("sums", total, column_sums, d, 1e-3, 2e-4 * std::sqrt(double(m)));
    } else {
      values &= compare("r", (each.in_place ? x_memory : r_memory).read(), r, d, 1e-4, 1e-4);
      values &= compare("stats", stats_memory.read(), stats, 2, 1e-4, 1e-4);
      values &= compare("y", halves[0] = y_memory.read(), y, d, 0.004, 1e-4);
    }
    const auto parts = partial.read();
    if (spec.backward) {
      incoming_memory.write(incoming);
    } else {
      x_memory.write(x);
    }
    product.run(partial.data, nullptr);
    check(cudaDeviceSynchronize(), "row product");
    bool again = true;
    if (spec.backward) {
      again = halves[0] == (operands.dx == dx_memory.data ? dx_memory : incoming_memory).read() &&
              parts == partial.read();
    } else {
      again = halves[0] == y_memory.read();
    }
    const bool guards = x_memory.guard_holds() && r_memory.guard_holds() &&
                        stats_memory.guard_holds() && y_memory.guard_holds() &&
                        incoming_memory.guard_holds() && dx_memory.guard_holds() &&
                        branch_memory.guard_holds() && partial.guard_holds();
    if (values && again && guards) continue;
    ++wrong;
    std::printf("  WRONG %s%s scales %g %g, variant %s:%s%s%s\n", spec.name().c_str(),
                spec.rms ? " rms" : "", each.stream_scale, each.branch_scale,
                variant.name().c_str(), values ? "" : " values", again ? "" : " not repeated",
                guards ? "" : " wrote behind the end");
  }
  return wrong;
}

int check_all(int multiprocessors, bool backward, const std::string& kind) {
  struct Shape {
    std::int64_t m, d, k;
  };
  const Shape shapes[] = {{64, 64, 64},     {128, 128, 128},  {100, 48, 40},    {1, 16, 8},
                          {200, 144, 72},   {1000, 128, 512}, {300, 192, 192},  {513, 256, 256},
                          {700, 256, 1024}, {777, 176, 776},  {9000, 256, 768}, {40000, 64, 64},
                          {20000, 256, 512}};
  int wrong = 0, count = 0;
  for (const Shape& s : shapes) {
    for (const bool plain : {true, false}) {
      const RowSpec spec{s.m, s.d, s.k, backward, !plain, plain};
      const Case each = plain ? Case{spec, 0.5f, 1.5f, true, true} : Case{spec, 1, 1, false, false};
      ++count;
      const int bad = check_case(each, kind, multiprocessors);
      if (bad > 0 && (wrong += bad) > 5) {
        std::printf("stopped after %d cases\n", count);
        return wrong;
      }
    }
  }
  std::printf("%s: %d cases, %d wrong\n", backward ? "backward" : "forward", count, wrong);
  return wrong;
}

void time_shape(std::int64_t d, std::int64_t k, bool backward, Products& products,
                int multiprocessors, cudaStream_t stream) {
  constexpr std::int64_t kPattern = 1 << 20;
  Halves a(kTokens * k), weight(d * k), branch(kTokens * d), y(kTokens * d), gradient(kTokens * d);
  Floats stream_memory(kTokens * d), stats(2 * kTokens), vectors(4 * d);
  a.write(random_bf16(kPattern, 1, 1));
  weight.write(random_bf16(d * k, 1 / std::sqrt(float(k)), 2));
  gradient.write(random_bf16(kPattern, 1, 3));
  stream_memory.write(random_floats(kPattern, 1, 4));
  std::vector<float> unit(static_cast<std::size_t>(2 * kTokens), 1.0f);
  stats.write(unit);
  vectors.write(unit);

  StepPlan plan;
  const auto bf16 = DType::bf16, f32 = DType::f32;
  const TensorId x_id = plan.input("x", f32, kTokens, d),
                 branch_id = plan.input("b", bf16, kTokens, d);
  const TensorId y_id = plan.input("y", bf16, kTokens, d), d_id = plan.input("d", bf16, kTokens, d);
  const TensorId stats_id = plan.input("s", f32, kTokens, 2), v_id = plan.input("v", f32, 1, d);
  const auto between = std::make_shared<Scratch>();
  const Context context{plan,
                        products,
                        std::make_shared<Scratch>(),
                        nullptr,
                        multiprocessors,
                        [&](TensorId id) -> void* {
                          if (id == x_id) return stream_memory.data;
                          if (id == branch_id) return branch.data;
                          if (id == y_id) return y.data;
                          if (id == d_id) return gradient.data;
                          if (id == stats_id) return stats.data;
                          return id == v_id ? vectors.data : nullptr;
                        },
                        [](TensorId) -> const void* { return nullptr; },
                        [](TensorId) { return TensorId{}; },
                        [](std::int64_t) -> void* { return nullptr; },
                        [](const SideWork&) {},
                        [&] { return between; },
                        [](const std::function<void()>&) {}};
  BoundOp norm;
  if (backward) {
    NormBackward op{.dy = branch_id, .incoming = d_id, .r = x_id, .stats = stats_id, .gain = v_id};
    op.dx = d_id;
    op.d_gain = v_id;
    norm = bind(op, context);
  } else {
    norm = bind(Norm{.x = x_id,
                     .branch = branch_id,
                     .gain = v_id,
                     .bias = v_id,
                     .r = x_id,
                     .y = y_id,
                     .stats = stats_id,
                     .branch_scale = 0.01f},
                context);
  }
  Floats partial(std::max<std::int64_t>(between->bytes() / 4, 3 * multiprocessors * d));
  between->place(partial.data);
  const ProductSpec spec{
      .m = kTokens, .n = d, .k = k, .transpose_b = !backward, .input = bf16, .result = bf16};
  const ProductOperands operands{a.data, weight.data, branch.data};
  const auto product = products.get(spec, operands);
  const double bare = time_call(stream, repeats, [&] { product->run(operands, stream); });
  const double alone = time_call(stream, repeats, [&] { norm(stream); });
  const double both = time_call(stream, repeats, [&] {
    product->run(operands, stream);
    norm(stream);
  });
  const double bytes = static_cast<double>(kTokens * (2 * k + d * (backward ? 8 : 10)));
  std::printf("%s width %ld, K %ld: product %.1f, norm %.1f, both %.1f us; floor %.1f us\n",
              backward ? "backward" : "forward", static_cast<long>(d), static_cast<long>(k), bare,
              alone, both, bytes / 4.2e6);
  const RowSpec row_spec{kTokens, d, k, backward, false, false};
  const RowOperands row_operands{.a = a.data,
                                 .b = weight.data,
                                 .gain = vectors.data,
                                 .stats = stats.data,
                                 .r = stream_memory.data,
                                 .branch_scale = 0.01f,
                                 .x = stream_memory.data,
                                 .shift = vectors.data,
                                 .bias = vectors.data,
                                 .y = y.data,
                                 .epsilon = kEpsilon,
                                 .incoming = gradient.data,
                                 .dx = gradient.data};
  for (const RowVariant& variant : RowProduct::variants(row_spec)) {
    const RowProduct fused(row_spec, row_operands, variant, multiprocessors);
    const double us = time_call(stream, repeats, [&] { fused.run(partial.data, stream); });
    std::printf("  %s, %d blocks: %.1f us, %.2fx\n", variant.name().c_str(), fused.parts(), us,
                both / us);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "device");
  if (argc > 1 && std::string(argv[1]) == "check") {
    int wrong = 0;
    const std::string way = argc > 2 ? argv[2] : "", kind = argc > 3 ? argv[3] : "";
    if (way != "backward") wrong += check_all(multiprocessors, false, kind);
    if (way != "forward") wrong += check_all(multiprocessors, true, kind);
    return wrong > 0;
  }
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  Products products(0, "", stream);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "once") {
      repeats = 1;
      continue;
    }
    const std::int64_t d = std::atoll(argv[i]);
    time_shape(d, d, false, products, multiprocessors, stream);
    time_shape(d, 4 * d, false, products, multiprocessors, stream);
    time_shape(d, 4 * d, true, products, multiprocessors, stream);
    time_shape(d, 3 * d, true, products, multiprocessors, stream);
  }
  return 0;
}
