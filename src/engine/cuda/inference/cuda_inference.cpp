#include "engine/cuda/inference/cuda_inference.h"

#include <fmt/format.h>

#include "engine/cuda/check.h"
#include "engine/cuda/gpu.h"
#include "engine/cuda/inference/row_kernels.h"

namespace fathom::engine::cuda {
namespace {

constexpr std::size_t kGemmWorkspace = 64u << 20;
constexpr int kSuggestions = 8;
constexpr std::int64_t kSplitBytes = std::int64_t{2} * kMostParts;  // of a number, all parts

/// f32, or bf16 parts one after the other.
class StoredMatrix final : public DeviceMatrix {
 public:
  StoredMatrix(CudaInference& owner, std::int64_t rows, std::int64_t cols, int parts)
      : DeviceMatrix(rows, cols),
        owner_(owner),
        parts_(parts),
        data_(owner.allocate(rows * cols * (parts == 0 ? 4 : std::int64_t{2} * parts))) {}
  ~StoredMatrix() override { owner_.release(data_); }

  int parts() const { return parts_; }  // 0: f32
  float* values() const { return static_cast<float*>(data_); }
  __nv_bfloat16* part(int index) const {
    return static_cast<__nv_bfloat16*>(data_) + index * rows() * cols();
  }

 private:
  CudaInference& owner_;
  int parts_;
  void* data_;
};

}  // namespace

CudaInference::CudaInference(const CudaOptions& options) {
  split_ = find_gpu(options.device, options.generic).hopper;
  check(cudaSetDevice(options.device), "device");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
  check(cublasLtCreate(&handle_), "start");
  workspaces_.add(stream_);
  workspaces_.resize(kGemmWorkspace);
}

CudaInference::~CudaInference() {
  cudaStreamSynchronize(stream_);
  gemms_.clear();
  cudaFree(scratch_);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void* CudaInference::allocate(std::int64_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(bytes)) != cudaSuccess) {
    cudaGetLastError();
    throw DeviceError(
        fmt::format("not enough GPU memory: {} MiB more are needed; use shorter windows (--window) "
                    "or --device cpu",
                    bytes >> 20));
  }
  check(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), stream_), "clearing memory");
  return memory;
}

void CudaInference::release(void* memory) noexcept {
  if (memory == nullptr) return;
  cudaStreamSynchronize(stream_);  // it may still be read
  cudaFree(memory);
}

std::int64_t CudaInference::free_bytes() const {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "device memory");
  return static_cast<std::int64_t>(free);
}

void CudaInference::upload(const void* host, std::int64_t bytes, void* to) {
  check(cudaMemcpyAsync(to, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_),
        "upload");
  // The caller may free its memory at once, even pinned memory.
  check(cudaStreamSynchronize(stream_), "upload");
}

void CudaInference::download(const void* from, std::int64_t bytes, void* host) {
  check(
      cudaMemcpyAsync(host, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_),
      "download");
  check(cudaStreamSynchronize(stream_), "download");
}

void CudaInference::copy(const void* from, std::int64_t bytes, void* to) {
  check(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_),
      "copy");
}

void* CudaInference::scratch(std::int64_t bytes) {
  if (bytes > scratch_bytes_) {
    release(scratch_);
    scratch_ = nullptr;
    scratch_bytes_ = 0;
    scratch_ = allocate(bytes);
    scratch_bytes_ = bytes;
  }
  return scratch_;
}

std::unique_ptr<DeviceMatrix> CudaInference::matrix(const float* host, std::int64_t rows,
                                                    std::int64_t cols) {
  const std::int64_t count = rows * cols, bytes = 4 * count;
  const bool aligned = cols % 8 == 0;  // tensor cores need rows of whole 16-byte units
  if (!split_ || !aligned) {
    auto made = std::make_unique<StoredMatrix>(*this, rows, cols, 0);
    upload(host, bytes, made->values());
    return made;
  }
  // The counter follows the values.
  auto* values = static_cast<float*>(scratch(bytes + 4));
  auto* needed = reinterpret_cast<int*>(values + count);
  const int one = 1;
  int parts = 0;
  upload(host, bytes, values);
  upload(&one, sizeof one, needed);
  launch_count_parts(values, count, needed, stream_);
  download(needed, sizeof parts, &parts);
  auto made = std::make_unique<StoredMatrix>(*this, rows, cols, parts);
  launch_split(values, count, parts, made->part(0), stream_);
  return made;
}

std::int64_t CudaInference::matrix_bytes() const {
  return split_ ? kSplitBytes : 4;
}

Gemm& CudaInference::gemm(const GemmSpec& spec, const GemmOperands& operands) {
  std::unique_ptr<Gemm>& made = gemms_[spec.key()];
  if (made) return *made;
  auto fresh = std::make_unique<Gemm>(handle_, spec, workspaces_);
  for (const Gemm::Algorithm& algorithm : fresh->suggest(operands, kSuggestions)) {
    // Tried on the real operands: the actual call overwrites the result.
    if (!fresh->try_run(operands, stream_, algorithm)) continue;
    fresh->choose(algorithm);
    made = std::move(fresh);
    return *made;
  }
  throw DeviceError("cuBLAS: no algorithm for " + spec.key());
}

void CudaInference::multiply(const float* x, std::int64_t rows, const DeviceMatrix& w,
                             const float* bias, float* y) {
  const auto& stored = static_cast<const StoredMatrix&>(w);
  const std::int64_t in = w.cols();
  GemmSpec spec{.m = rows, .n = w.rows(), .k = in, .transpose_b = true};
  if (stored.parts() == 0) {
    const GemmOperands operands{x, stored.values(), y};
    gemm(spec, operands).run(operands, stream_);
  } else {
    auto* halves = static_cast<__nv_bfloat16*>(scratch(kSplitBytes * rows * in));
    launch_split(x, rows * in, kMostParts, halves, stream_);
    spec.input = DType::bf16;
    GemmSpec adding = spec;
    adding.accumulate = true;
    // Both kinds are chosen before y holds a first sum: choosing writes to y.
    gemm(spec, {halves, stored.part(0), y});
    gemm(adding, {halves, stored.part(0), y});
    bool begun = false;
    for (int order = kMostParts - 1; order >= 0; --order) {  // small products first
      for (int part = 0; part < stored.parts() && part <= order; ++part) {
        const GemmOperands operands{halves + (order - part) * rows * in, stored.part(part), y};
        gemm(begun ? adding : spec, operands).run(operands, stream_);
        begun = true;
      }
    }
  }
  if (bias != nullptr) launch_add_bias(y, rows, w.rows(), bias, stream_);
}

void CudaInference::normalise(const NormShape& shape, const float* x, const float* gain,
                              const float* bias, float* y) {
  launch_norm(shape, x, gain, bias, y, stream_);
}

void CudaInference::rotate(const SequenceShape& shape, std::int64_t half, const float* cosines,
                           const float* sines, float* qkv) {
  launch_rotate(shape, half, cosines, sines, qkv, stream_);
}

void CudaInference::attend(const SequenceShape& shape, const float* qkv, float* out) {
  if (shape.head_size > kMostHeadSize) {
    throw DeviceError(
        fmt::format("heads of {} numbers are more than the GPU's kernels take ({}); "
                    "use --device cpu",
                    shape.head_size, kMostHeadSize));
  }
  launch_attention(shape, qkv, out, stream_);
}

void CudaInference::attention_weights(const SequenceShape& shape, std::int64_t head,
                                      const float* qkv, float* weights) {
  launch_attention_weights(shape, head, qkv, weights, stream_);
}

void CudaInference::set_columns(std::int64_t rows, std::int64_t stride, std::int64_t begin,
                                std::int64_t size, const float* values, float* x) {
  launch_set_columns(rows, stride, begin, size, values, x, stream_);
}

void CudaInference::activate(const float* u, std::int64_t rows, std::int64_t ffn,
                             RowActivation kind, bool gated, float* y) {
  launch_activate(u, rows, ffn, kind, gated, y, stream_);
}

void CudaInference::add_scaled(float* x, const float* y, std::int64_t count, float scale) {
  launch_add_scaled(x, y, count, scale, stream_);
}

void CudaInference::add_bias(float* x, std::int64_t rows, std::int64_t size, const float* bias) {
  launch_add_bias(x, rows, size, bias, stream_);
}

void CudaInference::scale_and_cap(float* x, std::int64_t count, float scale, float cap) {
  launch_scale_and_cap(x, count, scale, cap, stream_);
}

void CudaInference::losses(const float* logits, std::int64_t rows, std::int64_t vocab,
                           const std::int32_t* targets, float* out) {
  launch_losses(logits, rows, vocab, targets, out, stream_);
}

std::unique_ptr<Inference> make_inference(const CudaOptions& options) {
  return std::make_unique<CudaInference>(options);
}

}  // namespace fathom::engine::cuda
