// A training step as data, built once per (model, batch, precision) and run by any backend.
//
//   StepPlan plan;
//   TensorId w = plan.parameter("w", 64, 32);            // declare
//   plan.append(Linear{x, w, {}, y});                    // forward, in reading order
//   plan.set_adamw(beta1, beta2, groups);                // optional
//   plan.finish();                                       // derives backward, lays out memory
//   auto executor = make_cpu_executor(plan, ...);        // or ref, or a loaded CUDA module
//
// finish() walks the forward ops in reverse to get the backward ones, and cuts all activations
// from one arena by lifetime. After it the plan does not change; it holds no memory of its own
// and may be shared by executors.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "engine/plan/op.h"
#include "engine/plan/tensor.h"

namespace fathom::engine {

enum class Program : std::uint8_t {
  evaluate,          // forward and loss, without dropout
  train,             // forward, backward; parameter gradients overwritten
  train_accumulate,  // the same, parameter gradients added to
  update,            // norm, clip, AdamW, compute copies
  refresh,           // compute copies only: after the host wrote parameters
};
inline constexpr int kProgramCount = 5;

/// What a plan spends for what. All but `narrow_gradients` leave the gradients as they are.
struct PlanOptions {
  /// Gradients of f32 activations (a residual stream) are bf16, as those of the others.
  bool narrow_gradients = false;
  /// Operands of products keep their place for some ops longer: a device may then still be at them
  /// when the next ops run, or do an activation or norm with the product before it.
  bool slack = false;
};

class StepPlan {
 public:
  // ---- declare
  void set_options(const PlanOptions& options) { options_ = options; }
  TensorId parameter(const std::string& name, std::int64_t rows, std::int64_t cols);
  /// The parameter in the type products are taken in: itself for f32, a copy for bf16.
  TensorId compute_copy(TensorId parameter, DType dtype);
  TensorId input(const std::string& name, DType dtype, std::int64_t rows, std::int64_t cols);
  TensorId output(const std::string& name, std::int64_t rows, std::int64_t cols);
  TensorId activation(const std::string& name, DType dtype, std::int64_t rows, std::int64_t cols);

  // ---- build
  /// Throws InternalError when shapes or types do not fit.
  void append(ForwardOp op);
  /// Gradient of a tensor given from outside, for plans that do not end in a loss.
  void seed_gradient(TensorId y, TensorId dy);
  /// Keeps an activation (or its gradient) readable after a run.
  void keep(TensorId activation);
  void set_adamw(float beta1, float beta2, std::vector<AdamWGroup> groups);
  void finish();

  // ---- read
  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id.index)]; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<TensorId>& parameters() const { return parameters_; }
  const std::vector<ForwardOp>& forward() const { return forward_; }
  const std::vector<TensorId>& kept() const { return kept_; }
  const std::vector<Op>& program(Program which) const {
    return programs_[static_cast<std::size_t>(which)];
  }
  std::int64_t storage_bytes(Storage storage) const {
    return storage_bytes_[static_cast<std::size_t>(storage)];
  }
  /// A whole storage of f32 as one row, e.g. all gradients.
  TensorId whole(Storage storage) const { return wholes_[static_cast<std::size_t>(storage)]; }
  /// The gradient tensor of a parameter or, once finished, of an activation; may not exist.
  TensorId gradient(TensorId id) const;
  TensorId find(const std::string& name) const;
  TensorId adamw_norm() const { return norm_; }

 private:
  friend class Differentiator;
  TensorId add(Tensor tensor);
  TensorId place(Tensor tensor);
  std::vector<Op> derive_training_program(GradMode parameter_mode);
  void build_update_programs();

  std::vector<Tensor> tensors_;
  std::vector<TensorId> parameters_;
  std::vector<ForwardOp> forward_;
  std::array<std::vector<Op>, kProgramCount> programs_;
  std::array<std::int64_t, kStorageCount> storage_bytes_{};
  std::array<TensorId, kStorageCount> wholes_{};
  std::map<std::int32_t, TensorId> gradients_;
  std::map<std::int32_t, TensorId> copies_;
  std::vector<std::pair<TensorId, TensorId>> seeds_;
  std::vector<TensorId> kept_;
  PlanOptions options_;
  std::vector<AdamWGroup> groups_;
  float beta1_ = 0, beta2_ = 0;
  bool has_adamw_ = false;
  bool finished_ = false;
  TensorId norm_;
};

}  // namespace fathom::engine
