#include "engine/cuda/product.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "engine/cuda/check.h"

namespace fathom::engine::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = 64u << 20;  // what an algorithm may ask for
constexpr int kCandidates = 24;
constexpr float kLook = 1;  // milliseconds that a candidate is timed for, if it is short

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

template <class T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, T value) {
  check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), "product");
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         T value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
        "product");
}

cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu_aux_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::gelu_gradient:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::bias_gradient:
      return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

std::string text_of(const ProductSpec& s) {
  return fmt::format("{}x{}x{} {}{} {}{} {} {} {}", s.m, s.n, s.k, s.transpose_a ? "t" : "n",
                     s.transpose_b ? "t" : "n", static_cast<int>(s.input),
                     static_cast<int>(s.result), s.accumulate ? "+" : "=", s.alpha,
                     static_cast<int>(s.epilogue));
}

std::string hexadecimal(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.data) text += fmt::format("{:016x}", word);
  return text;
}

bool read_hexadecimal(const std::string& text, cublasLtMatmulAlgo_t& algorithm) {
  constexpr std::size_t kWords = std::size(decltype(algorithm.data){});
  if (text.size() != 16 * kWords) return false;
  for (std::size_t i = 0; i < kWords; ++i) {
    algorithm.data[i] = std::strtoull(text.substr(16 * i, 16).c_str(), nullptr, 16);
  }
  return true;
}

std::uint32_t alignment(const void* address, std::int64_t leading, DType dtype) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) |
                    static_cast<std::uintptr_t>(leading * bytes_of(dtype)) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

}  // namespace

Workspaces::~Workspaces() {
  for (const auto& [stream, block] : blocks_) cudaFree(block);
}

void Workspaces::resize(std::size_t bytes) {
  for (auto& [stream, block] : blocks_) {
    check(cudaFree(block), "memory for products");
    block = nullptr;
    if (bytes > 0) check(cudaMalloc(&block, bytes), "memory for products");
  }
  bytes_ = bytes;
}

// cuBLAS thinks in columns: a row-major matrix is its transpose there, so C^T = op(B)^T op(A)^T is
// asked for, B first.
Product::Product(cublasLtHandle_t handle, const ProductSpec& spec, const Workspaces& workspaces)
    : handle_(handle), spec_(spec), workspaces_(workspaces) {
  check(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "product");
  set(description_, CUBLASLT_MATMUL_DESC_TRANSA, spec.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_, CUBLASLT_MATMUL_DESC_TRANSB, spec.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(spec.epilogue));
  if (spec.epilogue == Epilogue::bias_gradient) {
    set(description_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
  } else if (spec.epilogue != Epilogue::none) {
    set(description_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(spec.result));
  }
  if (spec.epilogue == Epilogue::gelu_aux_bias || spec.epilogue == Epilogue::gelu_gradient) {
    set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, spec.n);
    set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type_of(spec.result));
  }
  const auto layout = [](cublasLtMatrixLayout_t& made, DType type, std::int64_t rows,
                         std::int64_t cols) {
    check(cublasLtMatrixLayoutCreate(&made, type_of(type), static_cast<std::uint64_t>(cols),
                                     static_cast<std::uint64_t>(rows), cols),
          "product");
  };
  layout(a_, spec.input, spec.transpose_a ? spec.k : spec.m, spec.transpose_a ? spec.m : spec.k);
  layout(b_, spec.input, spec.transpose_b ? spec.n : spec.k, spec.transpose_b ? spec.k : spec.n);
  layout(c_, spec.result, spec.m, spec.n);
}

Product::~Product() {
  cublasLtMatrixLayoutDestroy(a_);
  cublasLtMatrixLayoutDestroy(b_);
  cublasLtMatrixLayoutDestroy(c_);
  cublasLtMatmulDescDestroy(description_);
}

bool Product::suggest(const ProductOperands& operands, int wanted,
                      std::vector<cublasLtMatmulHeuristicResult_t>& found) {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "product");
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
  found.resize(static_cast<std::size_t>(wanted));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, description_, b_, a_, c_, c_, preference, wanted, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  found.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
  return !found.empty();
}

cublasStatus_t Product::launch(const ProductOperands& operands, cudaStream_t stream,
                               const cublasLtMatmulAlgo_t& algorithm) {
  if (operands.extra != nullptr) {
    set(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.extra);
  }
  if (operands.aux != nullptr) {
    set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux);
  }
  const float alpha = spec_.alpha, beta = spec_.accumulate ? 1.0f : 0.0f;
  return cublasLtMatmul(handle_, description_, &alpha, operands.b, b_, operands.a, a_, &beta,
                        operands.c, c_, operands.c, c_, &algorithm, workspaces_.of(stream),
                        workspaces_.bytes(), stream);
}

std::size_t Product::workspace_needed() const {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle_, description_, b_, a_, c_, c_, &algorithm_, &result);
  return status == CUBLAS_STATUS_SUCCESS ? result.workspaceSize : kWorkspaceBytes;
}

void Product::run(const ProductOperands& operands, cudaStream_t stream) {
  check(launch(operands, stream, algorithm_), text_of(spec_).c_str());
}

Products::Products(int device, const std::string& cache, cudaStream_t stream, cudaStream_t other)
    : stream_(stream), cache_(cache) {
  check(cublasLtCreate(&handle_), "start");
  workspaces_.add(stream);
  if (other != nullptr) workspaces_.add(other);
  workspaces_.resize(kWorkspaceBytes);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "device properties");
  machine_ = fmt::format("{} cublasLt {}", properties.name, cublasLtGetVersion());
  std::ifstream file(cache_);
  std::string line;
  if (cache_.empty() || !std::getline(file, line) || line != machine_) return;
  while (std::getline(file, line)) {
    const std::size_t bar = line.find('|');
    if (bar != std::string::npos) remembered_[line.substr(0, bar)] = line.substr(bar + 1);
  }
}

Products::~Products() {
  made_.clear();
  cublasLtDestroy(handle_);
}

std::int64_t Products::bytes() const {
  return workspaces_.total();
}

std::size_t Products::fastest(std::size_t count, const std::function<bool(std::size_t)>& launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  const auto time = [&](std::size_t i, int repeats) {
    cudaEventRecord(begin, stream_);
    for (int repeat = 0; repeat < repeats; ++repeat) launch(i);
    cudaEventRecord(end, stream_);
    check(cudaEventSynchronize(end), "timing of a product");
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    return milliseconds / static_cast<float>(repeats);
  };
  float best = 0;
  std::size_t chosen = count;
  for (std::size_t i = 0; i < count; ++i) {
    if (!launch(i)) continue;
    // Long products are steady: one look tells. Short ones are looked at again.
    float milliseconds = time(i, 1);
    if (chosen != count && milliseconds > 1.2f * best) continue;
    const int repeats = static_cast<int>(std::min(20.0f, kLook / milliseconds));
    if (repeats > 1) milliseconds = time(i, repeats);
    // The first suggestion stays unless another is clearly faster.
    if (chosen == count || milliseconds < 0.99f * best) {
      chosen = i;
      best = milliseconds;
    }
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return chosen;
}

cublasLtMatmulAlgo_t Products::choose(Product& product, const ProductOperands& operands,
                                      const std::vector<cublasLtMatmulHeuristicResult_t>& found) {
  const std::size_t chosen = fastest(found.size(), [&](std::size_t i) {
    return product.launch(operands, stream_, found[i].algo) == CUBLAS_STATUS_SUCCESS;
  });
  if (chosen == found.size())
    throw DeviceError("cuBLAS: no algorithm for " + text_of(product.spec_));
  return found[chosen].algo;
}

std::size_t Products::pick(const std::string& key, const std::vector<std::string>& names,
                           const std::function<void(std::size_t, cudaStream_t)>& run) {
  if (const auto known = remembered_.find(key); known != remembered_.end()) {
    const auto found = std::find(names.begin(), names.end(), known->second);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  const std::size_t chosen = fastest(names.size(), [&](std::size_t i) {
    run(i, stream_);
    return true;
  });
  remembered_[key] = names[chosen];
  changed_ = true;
  return chosen;
}

std::shared_ptr<Product> Products::get(const ProductSpec& spec, const ProductOperands& operands) {
  const std::string key = text_of(spec);
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  auto product = std::make_shared<Product>(handle_, spec, workspaces_);
  if (operands.extra != nullptr) {
    set(product->description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.extra);
  }
  if (operands.aux != nullptr) {
    set(product->description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux);
  }
  const auto known = remembered_.find(key);
  if (known == remembered_.end() || !read_hexadecimal(known->second, product->algorithm_) ||
      product->launch(operands, stream_, product->algorithm_) != CUBLAS_STATUS_SUCCESS) {
    std::vector<cublasLtMatmulHeuristicResult_t> found;
    if (!product->suggest(operands, kCandidates, found)) {
      if (spec.epilogue != Epilogue::none) return made_[key] = nullptr;
      throw DeviceError("cuBLAS: no algorithm for " + key);
    }
    product->algorithm_ = choose(*product, operands, found);
    remembered_[key] = hexadecimal(product->algorithm_);
    changed_ = true;
  }
  return made_[key] = product;
}

void Products::shrink() {
  std::size_t needed = 0;
  for (const auto& [key, product] : made_) {
    if (product != nullptr) needed = std::max(needed, product->workspace_needed());
  }
  workspaces_.resize(needed);
}

void Products::save() {
  if (cache_.empty() || !changed_) return;
  std::string text = machine_ + "\n";
  for (const auto& [spec, algorithm] : remembered_) text += spec + "|" + algorithm + "\n";
  // A cache that cannot be written costs the next start some time, nothing else.
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(cache_).parent_path(), error);
  const std::string temporary = fmt::format("{}.{}.tmp", cache_, getpid());
  std::ofstream(temporary) << text;
  std::filesystem::rename(temporary, cache_, error);
  changed_ = false;
}

}  // namespace fathom::engine::cuda
