// Derives the backward ops of a plan. Each op's differentiate() asks where gradients come from and
// go to; the differentiator decides which gradients exist at all and whether a contribution is the
// first one (overwrite) or a further one (accumulate).
#pragma once

#include <set>
#include <vector>

#include "engine/plan/step_plan.h"

namespace fathom::engine {

class Differentiator {
 public:
  /// `parameter_mode` is the mode of the first contribution to a parameter's gradient.
  Differentiator(StepPlan& plan, GradMode parameter_mode);

  struct Slot {
    TensorId id;  // does not exist when this gradient is not needed
    GradMode mode = GradMode::overwrite;
  };

  const StepPlan& plan() const { return plan_; }
  /// The gradient that has reached y; does not exist when none has.
  TensorId incoming(TensorId y) const;
  /// Where to put the next contribution to x's gradient.
  Slot slot(TensorId x);
  /// Declares that x's gradient is equal to `gradient`, so that no copy is made. Refuses (false)
  /// when x has one already, the types differ, or `source`, whose gradient that tensor is, has a
  /// consumer that would change it too early.
  bool share(TensorId x, TensorId source, TensorId gradient);
  void append(Op op) { ops_.push_back(std::move(op)); }
  /// The backward op just appended also does the forward op's work.
  void replaces_forward() { replaced_.insert(current_); }

  /// Forward ops (less the replaced ones), then backward ops.
  std::vector<Op> derive();

 private:
  bool needed(TensorId x) const { return needed_[x]; }
  void find_needed();

  StepPlan& plan_;
  GradMode parameter_mode_;
  TensorTable<bool> needed_;      // depends on a parameter
  std::set<std::int32_t> ready_;  // tensors whose gradient has a first contribution
  std::set<std::size_t> replaced_;
  std::size_t current_ = 0;
  std::vector<Op> ops_;
};

}  // namespace fathom::engine
