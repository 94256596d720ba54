// The arithmetic of a forward pass on a GPU, as the CUDA module offers it for running models
// trained elsewhere: row-major f32, one call after the other, no gradients.
//
// Weights are uploaded once as f32. On a GPU of compute capability 9.0 a matrix is kept as one
// to three bf16 parts that add up to it exactly (one suffices for weights stored as bf16, two for
// f16), inputs are split into three, and products of parts are added in f32 by the tensor cores,
// the smallest first; those below 2^-24 of the result are left out. Elsewhere, with
// CudaOptions::generic, and for rows not a multiple of 8, products are plain f32 without TF32.
//
// Equal rows at equal positions in calls of equal size give equal bits.
#pragma once

#include <cstdint>
#include <memory>

namespace fathom::engine {

/// Weights [rows, cols] on the device.
class DeviceMatrix {
 public:
  DeviceMatrix(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols) {}
  virtual ~DeviceMatrix() = default;
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }

 private:
  std::int64_t rows_, cols_;
};

enum class RowActivation : std::uint8_t { relu, gelu, gelu_tanh, silu, identity };

/// Parts of `size` numbers, `parts` side by side in each of `rows` rows, `stride` numbers apart.
struct NormShape {
  std::int64_t rows = 0, parts = 1, size = 0, stride = 0;
  bool centred = false;  // LayerNorm; else RMSNorm
  double epsilon = 0;
};

/// Rows of fused [q; k; v], H + 2 G heads of K numbers, of `sequences` texts of `tokens` positions.
struct SequenceShape {
  std::int64_t sequences = 0, tokens = 0, heads = 0, key_heads = 0, head_size = 0;
  std::int64_t window = 0;  // keys less than this far back; 0: all
  bool causal = true;
  float scale = 1;
  float cap = 0;  // c tanh(score / c); 0: none

  constexpr std::int64_t rows() const { return sequences * tokens; }
  constexpr std::int64_t stride() const { return (heads + 2 * key_heads) * head_size; }
};

/// All pointers except those called `host` point to memory from `allocate`. Calls are carried out
/// in order; `download` waits for all before it. Not to be called from several threads at once.
class Inference {
 public:
  virtual ~Inference() = default;

  /// Zeroed. DeviceError when there is not enough.
  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual std::int64_t free_bytes() const = 0;
  virtual void upload(const void* host, std::int64_t bytes, void* to) = 0;
  virtual void download(const void* from, std::int64_t bytes, void* host) = 0;
  virtual void copy(const void* from, std::int64_t bytes, void* to) = 0;
  virtual std::unique_ptr<DeviceMatrix> matrix(const float* host, std::int64_t rows,
                                               std::int64_t cols) = 0;
  /// The most bytes that `matrix` may take for each number.
  virtual std::int64_t matrix_bytes() const = 0;

  /// y[rows, out] = x[rows, in] w^T (+ bias).
  virtual void multiply(const float* x, std::int64_t rows, const DeviceMatrix& w, const float* bias,
                        float* y) = 0;
  /// x and y may be the same; `bias` may be absent.
  virtual void normalise(const NormShape& shape, const float* x, const float* gain,
                         const float* bias, float* y) = 0;
  /// Rotates the first 2 `half` numbers of every query and key; cosines and sines [tokens, half].
  virtual void rotate(const SequenceShape& shape, std::int64_t half, const float* cosines,
                      const float* sines, float* qkv) = 0;
  /// Softmax attention: out [rows, H K].
  virtual void attend(const SequenceShape& shape, const float* qkv, float* out) = 0;
  /// The weights [tokens, tokens] of one head over the first sequence.
  virtual void attention_weights(const SequenceShape& shape, std::int64_t head, const float* qkv,
                                 float* weights) = 0;
  /// Columns [begin, begin + size) of every row of `stride` numbers become `values`, or 0 where
  /// that is absent.
  virtual void set_columns(std::int64_t rows, std::int64_t stride, std::int64_t begin,
                           std::int64_t size, const float* values, float* x) = 0;
  /// u [rows, F], or [rows, 2 F] (gate, then up), to y [rows, F].
  virtual void activate(const float* u, std::int64_t rows, std::int64_t ffn, RowActivation kind,
                        bool gated, float* y) = 0;
  /// x += scale y.
  virtual void add_scaled(float* x, const float* y, std::int64_t count, float scale) = 0;
  /// Every row += bias.
  virtual void add_bias(float* x, std::int64_t rows, std::int64_t size, const float* bias) = 0;
  /// x = scale x, then cap tanh(x / cap) where there is a cap.
  virtual void scale_and_cap(float* x, std::int64_t count, float scale, float cap) = 0;
  /// -ln softmax(row)[target]; a negative target gives 0.
  virtual void losses(const float* logits, std::int64_t rows, std::int64_t vocab,
                      const std::int32_t* targets, float* out) = 0;
};

}  // namespace fathom::engine
