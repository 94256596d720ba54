// Inference by cuBLASLt and the kernels of this folder, on one stream.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/cuda/gemm/gemm.h"
#include "engine/cuda/inference.h"
#include "engine/cuda/module.h"

namespace fathom::engine::cuda {

class CudaInference final : public Inference {
 public:
  explicit CudaInference(const CudaOptions& options);
  ~CudaInference() override;
  CudaInference(const CudaInference&) = delete;
  CudaInference& operator=(const CudaInference&) = delete;

  void* allocate(std::int64_t bytes) override;
  void release(void* memory) noexcept override;
  std::int64_t free_bytes() const override;
  void upload(const void* host, std::int64_t bytes, void* to) override;
  void download(const void* from, std::int64_t bytes, void* host) override;
  void copy(const void* from, std::int64_t bytes, void* to) override;
  std::unique_ptr<DeviceMatrix> matrix(const float* host, std::int64_t rows,
                                       std::int64_t cols) override;
  std::int64_t matrix_bytes() const override;

  void multiply(const float* x, std::int64_t rows, const DeviceMatrix& w, const float* bias,
                float* y) override;
  void normalise(const NormShape& shape, const float* x, const float* gain, const float* bias,
                 float* y) override;
  void rotate(const SequenceShape& shape, std::int64_t half, const float* cosines,
              const float* sines, float* qkv) override;
  void attend(const SequenceShape& shape, const float* qkv, float* out) override;
  void attention_weights(const SequenceShape& shape, std::int64_t head, const float* qkv,
                         float* weights) override;
  void set_columns(std::int64_t rows, std::int64_t stride, std::int64_t begin, std::int64_t size,
                   const float* values, float* x) override;
  void activate(const float* u, std::int64_t rows, std::int64_t ffn, RowActivation kind, bool gated,
                float* y) override;
  void add_scaled(float* x, const float* y, std::int64_t count, float scale) override;
  void add_bias(float* x, std::int64_t rows, std::int64_t size, const float* bias) override;
  void scale_and_cap(float* x, std::int64_t count, float scale, float cap) override;
  void losses(const float* logits, std::int64_t rows, std::int64_t vocab,
              const std::int32_t* targets, float* out) override;

 private:
  /// The library's first choice for this shape; no timing, so that every start chooses the same.
  Gemm& gemm(const GemmSpec& spec, const GemmOperands& operands);
  /// Memory that grows to the largest need and stays.
  void* scratch(std::int64_t bytes);

  bool split_ = false;  // products of bf16 parts
  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  Workspaces workspaces_;
  std::map<std::string, std::unique_ptr<Gemm>> gemms_;
  void* scratch_ = nullptr;
  std::int64_t scratch_bytes_ = 0;
};

std::unique_ptr<Inference> make_inference(const CudaOptions& options);

}  // namespace fathom::engine::cuda
