#include "engine/cuda/gemm/gemm.h"

#include <fmt/format.h>

#include "engine/cuda/check.h"

namespace fathom::engine::cuda {
namespace {

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

template <class T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, T value) {
  check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), "GEMM");
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         T value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), "GEMM");
}

std::uint32_t alignment(const void* address, std::int64_t leading, DType dtype) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) |
                    static_cast<std::uintptr_t>(leading * bytes_of(dtype)) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

}  // namespace

std::string GemmSpec::key() const {
  return fmt::format("{}x{}x{} {}{} {}{} {} {} {}", m, n, k, transpose_a ? "t" : "n",
                     transpose_b ? "t" : "n", static_cast<int>(input), static_cast<int>(result),
                     accumulate ? "+" : "=", alpha, static_cast<int>(bias));
}

Workspaces::~Workspaces() {
  for (const auto& [stream, block] : blocks_) cudaFree(block);
}

void Workspaces::resize(std::size_t bytes) {
  for (auto& [stream, block] : blocks_) {
    check(cudaFree(block), "memory for GEMMs");
    block = nullptr;
    if (bytes > 0) check(cudaMalloc(&block, bytes), "memory for GEMMs");
  }
  bytes_ = bytes;
}

// cuBLAS is column-major: a row-major matrix is its transpose there, so we ask it for
// C^T = op(B)^T op(A)^T, B first.
Gemm::Gemm(cublasLtHandle_t handle, const GemmSpec& spec, const Workspaces& workspaces)
    : handle_(handle), spec_(spec), workspaces_(workspaces) {
  check(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "GEMM");
  set(description_, CUBLASLT_MATMUL_DESC_TRANSA, spec.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_, CUBLASLT_MATMUL_DESC_TRANSB, spec.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE,
      spec.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
  if (spec.bias) {
    set(description_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(spec.result));
  }
  const auto layout = [](cublasLtMatrixLayout_t& made, DType type, std::int64_t rows,
                         std::int64_t cols) {
    check(cublasLtMatrixLayoutCreate(&made, type_of(type), static_cast<std::uint64_t>(cols),
                                     static_cast<std::uint64_t>(rows), cols),
          "GEMM");
  };
  layout(a_, spec.input, spec.transpose_a ? spec.k : spec.m, spec.transpose_a ? spec.m : spec.k);
  layout(b_, spec.input, spec.transpose_b ? spec.n : spec.k, spec.transpose_b ? spec.k : spec.n);
  layout(c_, spec.result, spec.m, spec.n);
}

Gemm::~Gemm() {
  cublasLtMatrixLayoutDestroy(a_);
  cublasLtMatrixLayoutDestroy(b_);
  cublasLtMatrixLayoutDestroy(c_);
  cublasLtMatmulDescDestroy(description_);
}

std::vector<Gemm::Algorithm> Gemm::suggest(const GemmOperands& operands, int wanted) const {
  if (operands.bias != nullptr) {
    set(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  }
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "GEMM");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::uint64_t>(workspaces_.bytes()));
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const std::int64_t lead_a = spec_.transpose_a ? spec_.m : spec_.k;
  const std::int64_t lead_b = spec_.transpose_b ? spec_.k : spec_.n;
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
      alignment(operands.b, lead_b, spec_.input));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      alignment(operands.a, lead_a, spec_.input));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
      alignment(operands.c, spec_.n, spec_.result));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
      alignment(operands.c, spec_.n, spec_.result));
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(wanted));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, description_, b_, a_, c_, c_, preference, wanted, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  std::vector<Algorithm> algorithms;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
    algorithms.push_back(found[static_cast<std::size_t>(i)].algo);
  }
  return algorithms;
}

cublasStatus_t Gemm::launch(const GemmOperands& operands, cudaStream_t stream,
                            const Algorithm& algorithm) {
  if (operands.bias != nullptr) {
    set(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  }
  const float alpha = spec_.alpha, beta = spec_.accumulate ? 1.0f : 0.0f;
  return cublasLtMatmul(handle_, description_, &alpha, operands.b, b_, operands.a, a_, &beta,
                        operands.c, c_, operands.c, c_, &algorithm, workspaces_.of(stream),
                        workspaces_.bytes(), stream);
}

bool Gemm::try_run(const GemmOperands& operands, cudaStream_t stream, const Algorithm& algorithm) {
  return launch(operands, stream, algorithm) == CUBLAS_STATUS_SUCCESS;
}

void Gemm::run(const GemmOperands& operands, cudaStream_t stream) {
  check(launch(operands, stream, algorithm_), spec_.key().c_str());
}

std::size_t Gemm::workspace_needed(std::size_t otherwise) const {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle_, description_, b_, a_, c_, c_, &algorithm_, &result);
  return status == CUBLAS_STATUS_SUCCESS ? result.workspaceSize : otherwise;
}

}  // namespace fathom::engine::cuda
