// Times the GEMMs of a transformer layer on the GPU: cuBLASLt's, and those with an activation or a
// norm in their epilogue next to what they replace.
//
//   cuda_gemms 128 256 512                 # widths, 65,536 tokens
//   cuda_gemms 128 gelu                    # another activation
//   ncu -k regex:gemm_norm ./cuda_gemms once 256
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cuda_timing.h"
#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/gemm/gemm_activation.h"
#include "engine/cuda/gemm/gemm_norm.h"

using namespace fathom::engine;
using namespace fathom::engine::cuda;

namespace {

constexpr std::int64_t kTokens = 65536;
constexpr double kBytesPerMicrosecond = 4.2e6;  // for the floors

struct Bench {
  Gpu gpu = find_gpu(0);
  cudaStream_t stream = nullptr;
  GemmLibrary gemms{0, "", nullptr};
  int repeats = 20;
  ActivationKind kind = ActivationKind::gelu_tanh;
  // For the ops being bound.
  Tensors tensors;
  std::vector<void*> places;
  std::shared_ptr<Scratch> scratch = std::make_shared<Scratch>();

  TensorId add(void* place, DType type, std::int64_t rows, std::int64_t cols) {
    places.push_back(place);
    return tensors.add({"", type, rows, cols, Storage::input, 0, {}});
  }
  Context context() {
    return {tensors,
            gpu,
            gemms,
            scratch,
            nullptr,
            [this](TensorId id) {
              return id.exists() ? places[static_cast<std::size_t>(id.index)] : nullptr;
            },
            [](std::int64_t) -> void* { return nullptr; },
            [](const SideWork&) {},
            [this] { return scratch; },
            {}};
  }
  template <class Call>
  double time(const Call& call) const {
    return time_call(stream, repeats, call);
  }
};

double flops_of(const GemmSpec& spec) {
  return 2.0 * static_cast<double>(spec.m) * static_cast<double>(spec.n) *
         static_cast<double>(spec.k);
}

void time_gemm(Bench& bench, const char* name, const GemmSpec& spec, const GemmOperands& operands) {
  const auto gemm = bench.gemms.get(spec, operands);
  const double us = bench.time([&] { gemm->run(operands, bench.stream); });
  std::printf("  %-24s %8.1f us %6.0f TFLOP/s\n", name, us, flops_of(spec) / us * 1e-6);
}

void time_cublas(Bench& bench, std::int64_t d) {
  const auto bf16 = DType::bf16;
  const Block narrow = random_block(kTokens * d, true, 1, 1),
              wide = random_block(kTokens * 4 * d, true, 1, 2);
  const Block weight = random_block(4 * d * d, true, 0.05f, 3), out(kTokens * 4 * d * 2);
  const Block gradient(4 * d * d * 4), bias(4 * d * 2);
  for (const std::int64_t outs : {3 * d, d, 4 * d}) {
    std::printf("%ld -> %ld\n", static_cast<long>(d), static_cast<long>(outs));
    GemmSpec forward{
        .m = kTokens, .n = outs, .k = d, .transpose_b = true, .input = bf16, .result = bf16};
    time_gemm(bench, "forward", forward, {narrow.data(), weight.data(), out.data()});
    forward.bias = true;
    time_gemm(bench, "forward with a bias", forward,
              {narrow.data(), weight.data(), out.data(), bias.data()});
    time_gemm(bench, "dx", {.m = kTokens, .n = d, .k = outs, .input = bf16, .result = bf16},
              {wide.data(), weight.data(), out.data()});
    time_gemm(bench, "dW", {.m = outs, .n = d, .k = kTokens, .transpose_a = true, .input = bf16},
              {wide.data(), narrow.data(), gradient.data()});
  }
}

/// The GEMM and the op next to it, one after the other.
double time_apart(Bench& bench, const char* name, const GemmSpec& spec,
                  const GemmOperands& operands, const BoundOp& next, double bytes) {
  const Block memory(bench.scratch->bytes());
  bench.scratch->place(memory.data());
  const auto gemm = bench.gemms.get(spec, operands);
  const double both = bench.time([&] {
    gemm->run(operands, bench.stream);
    next(bench.stream);
  });
  std::printf("%s: GEMM %.1f, the op %.1f, both %.1f us; floor %.1f us\n", name,
              bench.time([&] { gemm->run(operands, bench.stream); }),
              bench.time([&] { next(bench.stream); }), both, bytes / kBytesPerMicrosecond);
  return both;
}

void time_activation(Bench& bench, std::int64_t d, bool backward) {
  const std::int64_t wide = 4 * d;
  const Block narrow = random_block(kTokens * d, true, 1, 1),
              weight = random_block(wide * d, true, 0.05f, 2);
  const Block pre = random_block(kTokens * wide, true, 1, 3), out(kTokens * wide * 2);
  const Block codes(kTokens * wide), bias(wide * 4), sums(wide * 4);
  bench.tensors.clear();
  bench.places.clear();
  const TensorId u = bench.add(pre.data(), DType::bf16, kTokens, wide);
  const TensorId y = bench.add(out.data(), DType::bf16, kTokens, wide);
  const TensorId b = bench.add(bias.data(), DType::f32, 1, wide);
  const TensorId slopes = bench.add(codes.data(), DType::u8, kTokens, wide);
  const TensorId db = bench.add(sums.data(), DType::f32, 1, wide);
  WithBiasGradient<ActivationBackward> back{{y, {}, y, GradMode::overwrite, bench.kind, slopes},
                                            {}};
  back.bias.d_bias = db;
  const BoundOp op = backward ? bind(back, bench.context())
                              : bind(Activation{u, y, bench.kind, slopes, b}, bench.context());
  GemmSpec spec{.m = kTokens, .n = wide, .k = d, .input = DType::bf16, .result = DType::bf16};
  spec.transpose_b = !backward;
  const double both =
      time_apart(bench, backward ? "activation, backward" : "activation, forward", spec,
                 {narrow.data(), weight.data(), backward ? out.data() : pre.data()}, op,
                 static_cast<double>(kTokens * (2 * d + 3 * wide)));
  const GemmActivationSpec fused{kTokens, wide, d, bench.kind, backward};
  for (const GemmActivationVariant& variant : GemmActivation::variants(fused, bench.gpu)) {
    const GemmActivation gemm(
        fused,
        {narrow.data(), weight.data(), reinterpret_cast<const float*>(bias.data()), codes.data(),
         out.data()},
        variant, bench.gpu);
    const Block partial(std::int64_t{gemm.parts()} * wide * 4);
    auto* parts = reinterpret_cast<float*>(partial.data());
    const double us = bench.time([&] {
      gemm.run(parts, bench.stream);
      if (!backward) return;
      reduce_parts(parts, gemm.parts(), wide, {reinterpret_cast<float*>(sums.data()), false}, 1,
                   bench.stream);
    });
    std::printf("  %s: %.1f us, %.2fx\n", variant.name().c_str(), us, both / us);
  }
}

void time_norm(Bench& bench, std::int64_t d, std::int64_t k, bool backward) {
  const Block a = random_block(kTokens * k, true, 1, 1),
              weight = random_block(d * k, true, 0.05f, 2);
  const Block gradient = random_block(kTokens * d, true, 1, 3),
              stream = random_block(kTokens * d, false, 1, 4);
  const Block stats = random_block(kTokens * 2, false, 1, 5),
              vectors = random_block(4 * d, false, 1, 6);
  const Block branch(kTokens * d * 2), y(kTokens * d * 2);
  bench.tensors.clear();
  bench.places.clear();
  const TensorId x = bench.add(stream.data(), DType::f32, kTokens, d);
  const TensorId between = bench.add(branch.data(), DType::bf16, kTokens, d);
  const TensorId result = bench.add(y.data(), DType::bf16, kTokens, d);
  const TensorId d_x = bench.add(gradient.data(), DType::bf16, kTokens, d);
  const TensorId s = bench.add(stats.data(), DType::f32, kTokens, 2);
  const TensorId v = bench.add(vectors.data(), DType::f32, 1, d);
  NormBackward back{};
  back.dy = between, back.incoming = d_x, back.r = x, back.stats = s, back.gain = v;
  back.dx = d_x, back.d_gain = v;
  const BoundOp op =
      backward ? bind(back, bench.context())
               : bind(Norm{x, between, v, v, x, result, s, NormKind::layer, 1e-5f, 1, 0.01f},
                      bench.context());
  GemmSpec spec{.m = kTokens, .n = d, .k = k, .input = DType::bf16, .result = DType::bf16};
  spec.transpose_b = !backward;
  const double both = time_apart(bench, backward ? "norm, backward" : "norm, forward", spec,
                                 {a.data(), weight.data(), branch.data()}, op,
                                 static_cast<double>(kTokens * (2 * k + d * (backward ? 8 : 10))));
  const LinearNormShape shape{.rows = kTokens, .width = d, .depth = k, .backward = backward};
  auto* numbers = reinterpret_cast<float*>(vectors.data());
  auto* rows = reinterpret_cast<float*>(stream.data());
  const GemmNormOperands operands{.a = a.data(),
                                  .b = weight.data(),
                                  .gain = numbers,
                                  .stats = reinterpret_cast<float*>(stats.data()),
                                  .r = rows,
                                  .branch_scale = 0.01f,
                                  .x = rows,
                                  .shift = numbers,
                                  .bias = numbers,
                                  .y = y.data(),
                                  .epsilon = 1e-5f,
                                  .incoming = gradient.data(),
                                  .dx = gradient.data()};
  for (const GemmNormVariant& variant : GemmNorm::variants(shape, bench.gpu)) {
    const GemmNorm gemm(shape, operands, variant, bench.gpu);
    const Block partial(
        std::max<std::int64_t>(4, std::int64_t{gemm.parts()} * gemm.sums() * d * 4));
    const double us =
        bench.time([&] { gemm.run(reinterpret_cast<float*>(partial.data()), bench.stream); });
    std::printf("  %s, %d blocks: %.1f us, %.2fx\n", variant.name().c_str(), gemm.parts(), us,
                both / us);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "once") {
      bench.repeats = 1;
    } else if (word == "relu" || word == "gelu" || word == "gelu_tanh") {
      bench.kind = word == "relu"   ? ActivationKind::relu
                   : word == "gelu" ? ActivationKind::gelu
                                    : ActivationKind::gelu_tanh;
    } else {
      const std::int64_t d = std::atoll(argv[i]);
      std::printf("width %ld\n", static_cast<long>(d));
      time_cublas(bench, d);
      for (const bool backward : {false, true}) {
        time_activation(bench, d, backward);
        for (const std::int64_t k : {backward ? 3 * d : d, 4 * d}) time_norm(bench, d, k, backward);
      }
    }
    std::fflush(stdout);
  }
  return 0;
}
