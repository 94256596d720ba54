#include "engine/cpu/matmul.h"

#include <cstdlib>

#include "core/error.h"

namespace fathom::engine::cpu {
namespace {

using dnnl::memory;

// Disables oneDNN's kernels for AMX tiles: version 2.6 neither asks Linux for the tile registers
// (needed since 5.16) nor copes with a processor that does not describe them (CPUID leaf 1Dh,
// hidden by some virtual machines), and crashes on an illegal instruction. oneDNN keeps the
// instruction set of its first call, so this is settled before main. ONEDNN_MAX_CPU_ISA, where set,
// takes precedence.
[[maybe_unused]] const bool kWithoutTiles = [] {
  return std::getenv("ONEDNN_MAX_CPU_ISA") == nullptr &&
         dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16) == dnnl::status::success;
}();

memory::data_type type_of(DType dtype) {
  return dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc matrix(std::int64_t rows, std::int64_t cols, DType dtype, bool transposed) {
  const memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{cols, 1};
  return {{rows, cols}, type_of(dtype), strides};
}

dnnl::matmul make_primitive(const dnnl::engine& engine, const MatmulSpec& spec) {
  const memory::desc a = matrix(spec.m, spec.k, spec.input, spec.transpose_a);
  const memory::desc b = matrix(spec.k, spec.n, spec.input, spec.transpose_b);
  const memory::desc c = matrix(spec.m, spec.n, spec.result, false);
  dnnl::primitive_attr attributes;
  if (spec.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  try {
    if (!spec.bias) return dnnl::matmul({{a, b, c}, attributes, engine});
    const memory::desc bias = matrix(1, spec.n, DType::f32, false);
    return dnnl::matmul({{a, b, bias, c}, attributes, engine});
  } catch (const dnnl::error& error) {
    throw DeviceError(std::string("oneDNN cannot make this GEMM: ") + error.message);
  }
}

}  // namespace

Matmul::Matmul(const dnnl::engine& engine, const MatmulSpec& spec)
    : primitive_(make_primitive(engine, spec)),
      a_(matrix(spec.m, spec.k, spec.input, spec.transpose_a), engine, nullptr),
      b_(matrix(spec.k, spec.n, spec.input, spec.transpose_b), engine, nullptr),
      c_(matrix(spec.m, spec.n, spec.result, false), engine, nullptr) {
  arguments_ = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}};
  if (!spec.bias) return;
  bias_ = memory(matrix(1, spec.n, DType::f32, false), engine, nullptr);
  arguments_.emplace(DNNL_ARG_BIAS, bias_);
}

void Matmul::run(dnnl::stream& stream, const void* a, const void* b, void* c, const float* bias) {
  a_.set_data_handle(const_cast<void*>(a), stream);
  b_.set_data_handle(const_cast<void*>(b), stream);
  c_.set_data_handle(c, stream);
  if (bias != nullptr) bias_.set_data_handle(const_cast<float*>(bias), stream);
  primitive_.execute(stream, arguments_);
}

}  // namespace fathom::engine::cpu
