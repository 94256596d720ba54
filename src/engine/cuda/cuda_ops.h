// Binding of ops to device memory and kernels, each in ops/NAME/NAME_cuda.cu. A bound op only
// enqueues work on a stream and can be captured into a graph: it allocates nothing and waits for
// nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/cuda/check.h"
#include "engine/cuda/column_sums.h"
#include "engine/cuda/gemm/gemm_library.h"
#include "engine/cuda/gpu.h"
#include "engine/cuda/launch.h"
#include "engine/cuda/operand.h"
#include "engine/plan/lanes.h"
#include "engine/plan/op.h"

namespace fathom::engine::cuda {

/// StepScalars as kernels read them, from device memory: a captured graph stays valid when they
/// change.
struct DeviceScalars {
  float loss_scale, learning_rate, clip_norm;
  float correction1, correction2;  // AdamW's 1 / (1 - beta^t)
  std::uint64_t draw;
  bool operator==(const DeviceScalars&) const = default;
};

/// Memory for one op at a time; it grows while ops are bound and is fixed when they run.
class Scratch {
 public:
  void reserve(std::int64_t bytes) { bytes_ = std::max(bytes_, bytes); }
  void place(void* memory) { memory_ = memory; }
  void* data() const { return memory_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
  void* memory_ = nullptr;
};

using BoundOp = std::function<void(cudaStream_t)>;

/// Part of an op that may run concurrently with others: before it (`early`), from the start of the
/// program, or after it. The two parts share the memory of `between`: the first writes it, the
/// second reads it.
struct SideWork {
  BoundOp run;
  Footprint touched;  // apart from `between`
  std::shared_ptr<Scratch> between;
  bool early = false;
};

inline ByteRange bytes_at(const void* begin, std::int64_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  return {first, first + static_cast<std::uintptr_t>(begin == nullptr ? 0 : bytes)};
}

struct Context {
  const Tensors& tensors;
  const Gpu& gpu;
  GemmLibrary& gemms;
  std::shared_ptr<Scratch> scratch;
  const DeviceScalars* scalars;                   // on the device
  std::function<void*(TensorId)> address;         // nullptr for a tensor that does not exist
  std::function<void*(std::int64_t bytes)> hold;  // device memory that lives as long as the ops
  std::function<void(SideWork)> beside;           // for the op being bound
  /// Memory for SideWork::between; some ops later another op gets the same memory.
  std::function<std::shared_ptr<Scratch>()> between;
  /// Calls back once all ops are bound and the scratch is allocated.
  std::function<void(std::function<void()>)> when_ready;

  const Tensor& tensor(TensorId id) const { return tensors[id]; }
  Operand operand(TensorId id) const {
    return {address(id), id.exists() && tensor(id).dtype == DType::bf16};
  }
  float* floats(TensorId id) const { return static_cast<float*>(address(id)); }
  const std::int32_t* tokens(TensorId id) const {
    return static_cast<const std::int32_t*>(address(id));
  }
  /// A device copy of host data that lives as long as the executor.
  template <class T>
  T* upload(const std::vector<T>& values) const {
    void* memory =
        hold(static_cast<std::int64_t>(std::max<std::size_t>(1, values.size()) * sizeof(T)));
    check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
          "copy");
    return static_cast<T*>(memory);
  }
};

BoundOp bind(const Embed&, const Context&);
BoundOp bind(const EmbedBackward&, const Context&);
BoundOp bind(const AddPositions&, const Context&);
BoundOp bind(const AddPositionsBackward&, const Context&);
BoundOp bind(const Linear&, const Context&);
BoundOp bind(const LinearBackward&, const Context&);
BoundOp bind(const Activation&, const Context&);
BoundOp bind(const ActivationBackward&, const Context&);
BoundOp bind(const Norm&, const Context&);
BoundOp bind(const NormBackward&, const Context&);
BoundOp bind(const Residual&, const Context&);
BoundOp bind(const ResidualBackward&, const Context&);
BoundOp bind(const Slice&, const Context&);
BoundOp bind(const SliceBackward&, const Context&);
BoundOp bind(const AddSlice&, const Context&);
BoundOp bind(const AddSliceBackward&, const Context&);
BoundOp bind(const MapKeys&, const Context&);
BoundOp bind(const MapKeysBackward&, const Context&);
BoundOp bind(const Attention&, const Context&);
BoundOp bind(const AttentionBackward&, const Context&);
BoundOp bind(const Dropout&, const Context&);
BoundOp bind(const DropoutBackward&, const Context&);
BoundOp bind(const HeadLoss&, const Context&);
BoundOp bind(const HeadLossBackward&, const Context&);
BoundOp bind(const Logits&, const Context&);
BoundOp bind(const SquaredNorm&, const Context&);
BoundOp bind(const AdamW&, const Context&);
BoundOp bind(const Prox&, const Context&);
BoundOp bind(const CopyParameters&, const Context&);
BoundOp bind(const LinearThenActivation&, const Context&);
BoundOp bind(const LinearBackwardThenActivation&, const Context&);
BoundOp bind(const LinearThenNorm&, const Context&);
BoundOp bind(const LinearBackwardThenNorm&, const Context&);
BoundOp bind(const WithBiasGradient<ActivationBackward>&, const Context&);
BoundOp bind(const WithBiasGradient<NormBackward>&, const Context&);
BoundOp bind(const WithBiasGradient<AttentionBackward>&, const Context&);

/// The bias gradient that `bias`, which makes nothing else, adds up.
inline ColumnSums column_sums(const LinearBackward& bias, const Context& context) {
  return {context.floats(bias.d_bias), bias.d_bias_mode == GradMode::accumulate};
}

/// sums[period, width] (+)= factor * sums of x's rows n = t mod period, in a fixed order. x is
/// looked up at launch: it may be in the scratch, of which the sum uses what follows `offset`.
BoundOp bind_period_sum(const Context& context, std::function<Operand()> x, float* sums,
                        std::int64_t rows, std::int64_t width, std::int64_t period, float factor,
                        GradMode mode, std::int64_t offset = 0);
inline BoundOp bind_period_sum(const Context& context, Operand x, float* sums, std::int64_t rows,
                               std::int64_t width, std::int64_t period, float factor,
                               GradMode mode) {
  return bind_period_sum(
      context, [x] { return x; }, sums, rows, width, period, factor, mode);
}

/// sums[width] (+)= factor * the sum of `parts` rows of partial[parts, width].
void reduce_parts(const float* partial, std::int64_t parts, std::int64_t width,
                  const ColumnSums& sums, float factor, cudaStream_t stream);

/// Sums over the rows that the backward of a norm makes: d_gain, d_bias, and the gradient of the
/// bias of the branch.
struct NormSums {
  NormSums(const ColumnSums& gain, const ColumnSums& bias, const ColumnSums& branch)
      : target{gain.to, bias.to, branch.to},
        accumulate{gain.accumulate, bias.accumulate, branch.accumulate} {}
  float* target[3];  // null: not wanted
  bool accumulate[3];
};
/// The sums (+)= those of the parts of partial [parts, count, width], in a fixed order.
void reduce_sums(const float* partial, std::int64_t parts, int count, std::int64_t width,
                 const NormSums& sums, cudaStream_t stream);
/// The same as side work of the op being bound, alongside what comes next: no op waits for it.
/// Returns the memory of `partial`.
std::shared_ptr<Scratch> reduce_beside(const NormSums& sums, std::int64_t parts, int count,
                                       std::int64_t width, const Context& context);

/// text of 16- or 32-bit ids; row b of inputs is text[start_b, start_b + T), targets one id later.
void gather_windows(const void* text, int bytes_per_token, const std::uint64_t* starts,
                    std::int64_t batch, std::int64_t context, std::int32_t* inputs,
                    std::int32_t* targets, cudaStream_t stream);

}  // namespace fathom::engine::cuda
