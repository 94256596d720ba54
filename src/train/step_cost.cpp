#include "train/step_cost.h"

#include "engine/plan/op_cost.h"
#include "engine/plan/step_plan.h"

namespace fathom::train {

using engine::Op;
using engine::Program;

double training_flops(const engine::StepPlan& plan) {
  double flops = 0;
  for (const Op& op : plan.program(Program::train)) flops += flops_of(op, plan.tensors());
  return flops;
}

double training_bytes(const engine::StepPlan& plan) {
  double bytes = 0;
  for (const Program program : {Program::train, Program::update}) {
    for (const Op& op : plan.program(program)) bytes += bytes_of(op, plan.tensors());
  }
  return bytes;
}

}  // namespace fathom::train
