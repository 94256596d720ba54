#include "train/step_cost.h"

#include "core/counts.h"

namespace fathom::train {
namespace {

using namespace engine;

double product(const StepPlan& plan, TensorId x, TensorId weight) {
  return 2.0 * as_double(plan.tensor(x).rows) * as_double(plan.tensor(weight).size());
}

double attention(const AttentionShape& s) {
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < s.context; ++i) {
    for (std::int64_t j = 0; j < s.context; ++j) pairs += s.allows(i, j);
  }
  return 4.0 * as_double(s.batch * s.heads * s.head_size) * as_double(pairs);
}

}  // namespace

double training_flops(const StepPlan& plan) {
  double forward = 0;
  for (const ForwardOp& op : plan.forward()) {
    if (const auto* linear = std::get_if<Linear>(&op)) {
      forward += product(plan, linear->x, linear->weight);
    } else if (const auto* head = std::get_if<HeadLoss>(&op)) {
      forward += product(plan, head->x, head->weight);
    } else if (const auto* attend = std::get_if<Attention>(&op)) {
      forward += attention(attend->shape);
    }
  }
  return 3 * forward;  // every product has two in its backward
}

double training_bytes(const StepPlan& plan) {
  double bytes = 0;
  for (const Program program : {Program::train, Program::update}) {
    for (const Op& op : plan.program(program)) {
      const Uses uses = uses_of(op);
      for (const auto& ids : {uses.reads, uses.writes}) {
        for (const TensorId id : ids) {
          if (id.exists()) bytes += as_double(plan.tensor(id).bytes());
        }
      }
    }
  }
  return bytes;
}

}  // namespace fathom::train
