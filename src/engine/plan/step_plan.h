// A training step as data, built once per (model, batch, precision) and run by any backend.
//
//   StepPlan plan;
//   TensorId w = plan.parameter("w", 64, 32);            // declare
//   plan.append(Linear{x, w, {}, y});                    // forward, in reading order
//   plan.set_adamw(beta1, beta2, groups);                // optional
//   plan.finish();                                       // derives backward, lays out memory
//   auto executor = make_executor(plan, device);         // engine/device.h
//
// finish() walks the forward ops in reverse to get the backward ones, fuses what the target device
// offers, and cuts all activations from one arena by lifetime. After that the plan does not change;
// it holds no memory of its own and may be shared by executors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/plan/arena_layout.h"
#include "engine/plan/device_offers.h"
#include "engine/plan/program.h"
#include "engine/plan/tensor.h"

namespace fathom::engine {

class StepPlan {
 public:
  // ---- declare
  /// Makes gradients of f32 activations (a residual stream) bf16, like those of the others. Call it
  /// before finish(); it is the only choice here that changes results.
  void narrow_gradients() { narrow_gradients_ = true; }
  TensorId parameter(const std::string& name, std::int64_t rows, std::int64_t cols);
  /// The parameter in the type that GEMMs use: itself for f32, a copy for bf16.
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
  /// Proximal steps after AdamW.
  void set_prox(ProxKind kind, std::vector<ProxGroup> groups);
  void finish(const PlanTarget& target = {});

  // ---- read
  const Tensor& tensor(TensorId id) const { return tensors_[id]; }
  const Tensors& tensors() const { return tensors_; }
  const std::vector<TensorId>& parameters() const { return parameters_; }
  const std::vector<ForwardOp>& forward() const { return forward_; }
  const std::vector<TensorId>& kept() const { return kept_; }
  const std::vector<Op>& program(Program which) const { return programs_[which]; }
  /// The best lane for each op of a program, on a device with two.
  const std::vector<Lane>& lanes(Program which) const { return lanes_[which]; }
  const DeviceOffers& offers() const { return offers_; }
  std::int64_t storage_bytes(Storage storage) const { return storage_bytes_[storage]; }
  /// A whole storage of f32 as one row, e.g. all gradients.
  TensorId whole(Storage storage) const { return wholes_[storage]; }
  /// The gradient tensor of a parameter or, once finished, of an activation; may not exist.
  TensorId gradient(TensorId id) const;
  TensorId find(const std::string& name) const;
  TensorId adamw_norm() const { return norm_; }

 private:
  friend class Differentiator;
  TensorId add(Tensor tensor);
  TensorId place(Tensor tensor);
  void derive_programs();
  void fuse_programs(const PlanTarget& target);
  void narrow_biases();
  void build_update_programs();

  Tensors tensors_;
  std::vector<TensorId> parameters_;
  std::vector<ForwardOp> forward_;
  Programs programs_;
  ProgramLanes lanes_;
  EnumArray<Storage, std::int64_t> storage_bytes_{};
  EnumArray<Storage, TensorId> wholes_{};
  std::map<std::int32_t, TensorId> gradients_;
  std::map<std::int32_t, TensorId> copies_;
  std::vector<std::pair<TensorId, TensorId>> seeds_;
  std::vector<TensorId> kept_;
  DeviceOffers offers_;
  bool narrow_gradients_ = false;
  std::vector<AdamWGroup> groups_;
  float beta1_ = 0, beta2_ = 0;
  Prox prox_;
  bool has_adamw_ = false;
  bool finished_ = false;
  TensorId norm_;
};

}  // namespace fathom::engine
