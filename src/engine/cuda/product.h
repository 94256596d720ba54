// Matrix products by cuBLASLt, each planned once: descriptors made, the algorithm picked by timing
// the library's suggestions on the very memory it will run on, and remembered in a file so that the
// next start, and a resumed run, takes the same one and gives the same bits.
//
//   C[M, N] (+)= alpha op(A)[M, K] op(B)[K, N],   row-major, op is identity or transpose
//
// Only algorithms whose sums have a fixed order are taken (no in-place split-K).
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/plan/tensor.h"

namespace fathom::engine::cuda {

/// What happens to the result on its way to memory. N is C's width.
/// All but `bias` are here for bench/cuda_products.cu, which shows that they do not pay.
enum class Epilogue : std::uint8_t {
  none,
  bias,           // + bias[N]
  gelu_aux_bias,  // gelu_tanh(z + bias), z + bias kept in aux[M, N]
  gelu_gradient,  // z * gelu_tanh'(aux)
  bias_gradient,  // also extra[M] = sums of op(A)'s rows: dy's column sums beside dy^T x
};

struct ProductSpec {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType input = DType::f32, result = DType::f32;
  bool accumulate = false;
  float alpha = 1;
  Epilogue epilogue = Epilogue::none;
};

struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* extra = nullptr;  // bias (in the result's type) or, written, its gradient (f32)
  void* aux = nullptr;
};

/// Memory for products to run in, one block for each stream: products of one stream take turns.
class Workspaces {
 public:
  Workspaces() = default;
  ~Workspaces();
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  void add(cudaStream_t stream) { blocks_[stream] = nullptr; }
  /// All blocks anew; nothing may be running.
  void resize(std::size_t bytes);
  void* of(cudaStream_t stream) const { return blocks_.at(stream); }
  std::size_t bytes() const { return bytes_; }  // of one
  std::int64_t total() const { return static_cast<std::int64_t>(blocks_.size() * bytes_); }

 private:
  std::map<cudaStream_t, void*> blocks_;
  std::size_t bytes_ = 0;
};

class Product {
 public:
  Product(cublasLtHandle_t handle, const ProductSpec& spec, const Workspaces& workspaces);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  /// Throws DeviceError when the library refuses.
  void run(const ProductOperands& operands, cudaStream_t stream);

 private:
  friend class Products;
  bool suggest(const ProductOperands& operands, int wanted,
               std::vector<cublasLtMatmulHeuristicResult_t>& found);
  cublasStatus_t launch(const ProductOperands& operands, cudaStream_t stream,
                        const cublasLtMatmulAlgo_t& algorithm);
  /// Bytes the chosen algorithm needs.
  std::size_t workspace_needed() const;

  cublasLtHandle_t handle_;
  ProductSpec spec_;
  const Workspaces& workspaces_;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

/// All products of one executor, equal ones shared.
class Products {
 public:
  /// `cache` is a file name, or "" to keep nothing. Products may run on `stream`, where they are
  /// timed, and beside it on `other`.
  Products(int device, const std::string& cache, cudaStream_t stream, cudaStream_t other = nullptr);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Null when the library has no such product; only epilogues may be missing. The operands are
  /// used for timing: C is overwritten.
  std::shared_ptr<Product> get(const ProductSpec& spec, const ProductOperands& operands);
  /// The fastest of several ways to do one thing, by timing `run`; remembered under `key` by name.
  std::size_t pick(const std::string& key, const std::vector<std::string>& names,
                   const std::function<void(std::size_t, cudaStream_t)>& run);
  /// Writes newly chosen algorithms to the cache file.
  void save();
  /// Gives back the memory that no chosen algorithm needs.
  void shrink();
  std::int64_t bytes() const;

 private:
  cublasLtMatmulAlgo_t choose(Product& product, const ProductOperands& operands,
                              const std::vector<cublasLtMatmulHeuristicResult_t>& found);
  /// `count` if `launch` refuses all.
  std::size_t fastest(std::size_t count, const std::function<bool(std::size_t)>& launch);

  cublasLtHandle_t handle_ = nullptr;
  cudaStream_t stream_;
  Workspaces workspaces_;
  std::string cache_, machine_;
  std::map<std::string, std::string> remembered_;  // spec -> algorithm, both as text
  bool changed_ = false;
  std::map<std::string, std::shared_ptr<Product>> made_;
};

}  // namespace fathom::engine::cuda
