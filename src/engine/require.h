// Shape rules of ops: a violation is a bug in the code that built the plan.
#pragma once

#include "core/error.h"
#include "engine/plan/step_plan.h"

namespace fathom::engine {

inline void require(bool rule, const char* what) {
  if (!rule) throw InternalError(std::string("plan: ") + what);
}

inline bool has_shape(const StepPlan& plan, TensorId id, std::int64_t rows, std::int64_t cols) {
  return id.exists() && plan.tensor(id).rows == rows && plan.tensor(id).cols == cols;
}

inline bool is_row_or_none(const StepPlan& plan, TensorId id, std::int64_t cols) {
  return !id.exists() || (has_shape(plan, id, 1, cols) && plan.tensor(id).dtype == DType::f32);
}

inline bool same_shape(const StepPlan& plan, TensorId a, TensorId b) {
  return has_shape(plan, a, plan.tensor(b).rows, plan.tensor(b).cols);
}

}  // namespace fathom::engine
