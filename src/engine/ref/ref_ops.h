// The naive form of every op, each in ops/NAME/NAME_ref.cpp.
#pragma once

#include "engine/ref/ref_executor.h"

namespace fathom::engine::ref {

/// Operands of the op being run.
struct Context {
  const StepPlan& plan;
  RefExecutor& memory;
  StepScalars scalars;

  double* data(TensorId id) const { return memory.data(id); }
  const Tensor& tensor(TensorId id) const { return plan.tensor(id); }
};

/// Stores one gradient value, or adds it.
inline void put(double* place, double value, GradMode mode) {
  *place = mode == GradMode::overwrite ? value : *place + value;
}

void run(const Embed&, const Context&);
void run(const EmbedBackward&, const Context&);
void run(const AddPositions&, const Context&);
void run(const AddPositionsBackward&, const Context&);
void run(const Linear&, const Context&);
void run(const LinearBackward&, const Context&);
void run(const Activation&, const Context&);
void run(const ActivationBackward&, const Context&);
void run(const Norm&, const Context&);
void run(const NormBackward&, const Context&);
void run(const Residual&, const Context&);
void run(const ResidualBackward&, const Context&);
void run(const Slice&, const Context&);
void run(const SliceBackward&, const Context&);
void run(const AddSlice&, const Context&);
void run(const AddSliceBackward&, const Context&);
void run(const MapKeys&, const Context&);
void run(const MapKeysBackward&, const Context&);
void run(const Attention&, const Context&);
void run(const AttentionBackward&, const Context&);
void run(const Dropout&, const Context&);
void run(const DropoutBackward&, const Context&);
void run(const HeadLoss&, const Context&);
void run(const HeadLossBackward&, const Context&);
void run(const Logits&, const Context&);
void run(const SquaredNorm&, const Context&);
void run(const AdamW&, const Context&);
void run(const Prox&, const Context&);
void run(const CopyParameters&, const Context&);
void run(const LinearThenActivation&, const Context&);
void run(const LinearBackwardThenActivation&, const Context&);
void run(const LinearThenNorm&, const Context&);
void run(const LinearBackwardThenNorm&, const Context&);
template <class Maker>
void run(const WithBiasGradient<Maker>&, const Context&);

}  // namespace fathom::engine::ref
