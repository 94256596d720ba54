// Binding of ops to memory and kernels, each in ops/NAME/NAME_cpu.cpp.
#pragma once

#include <dnnl.hpp>
#include <functional>
#include <memory>

#include "engine/cpu/kernels.h"
#include "engine/cpu/matmul.h"
#include "engine/cpu/memory_block.h"
#include "engine/cpu/parallel.h"
#include "engine/plan/step_plan.h"
#include "engine/plan/step_scalars.h"

namespace fathom::engine::cpu {

/// Memory for one op at a time; it grows while ops are bound and is fixed when they run.
class Scratch {
 public:
  void reserve(std::int64_t floats) { size_ = std::max(size_, floats); }
  void allocate() { memory_ = allocate_block(bytes()); }
  float* data() const { return static_cast<float*>(memory_.get()); }
  std::int64_t bytes() const { return size_ * 4; }

 private:
  std::int64_t size_ = 0;
  MemoryBlock memory_;
};

struct Context {
  const StepPlan& plan;
  const Kernels& kernels;
  int threads;
  dnnl::engine engine;
  std::shared_ptr<dnnl::stream> stream;
  std::shared_ptr<Scratch> scratch;
  std::function<void*(TensorId)> address;  // nullptr for a tensor that does not exist
  bool (*stop)(void*) = nullptr;           // for ops that may take minutes (AttentionArgs)
  void* stop_context = nullptr;

  Operand operand(TensorId id) const {
    return {address(id), id.exists() && plan.tensor(id).dtype == DType::bf16};
  }
  float* floats(TensorId id) const { return static_cast<float*>(address(id)); }
  const std::int32_t* tokens(TensorId id) const {
    return static_cast<const std::int32_t*>(address(id));
  }
  const Tensor& tensor(TensorId id) const { return plan.tensor(id); }
  std::shared_ptr<Matmul> matmul(const MatmulSpec& spec) const {
    return std::make_shared<Matmul>(engine, spec);
  }
};

using BoundOp = std::function<void(const StepScalars&)>;

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

/// sums[period, width] (+)= factor * sums of x's rows n = t mod period.
BoundOp bind_period_sum(const Context& context, Operand x, float* sums, std::int64_t rows,
                        std::int64_t width, std::int64_t period, float factor, GradMode mode);

}  // namespace fathom::engine::cpu
