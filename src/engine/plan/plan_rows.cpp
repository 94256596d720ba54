#include "engine/plan/plan_rows.h"

#include <fmt/format.h>

#include "engine/plan/op_cost.h"

namespace fathom::engine {
namespace {

std::vector<std::string> described(const std::vector<TensorId>& ids, const Tensors& tensors) {
  std::vector<std::string> texts;
  for (const TensorId id : ids) {
    const Tensor& tensor = tensors[id];
    texts.push_back(fmt::format("{} [{} x {}] {}", tensor.name, tensor.rows, tensor.cols,
                                name_of(tensor.dtype)));
  }
  return texts;
}

}  // namespace

std::vector<PlanRow> rows_of(const StepPlan& plan, Program which) {
  const Tensors& tensors = plan.tensors();
  const auto& program = plan.program(which);
  std::vector<PlanRow> rows;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Uses uses = uses_of(program[i]);
    rows.push_back({.op = op_name(program[i]),
                    .lane = plan.lanes(which)[i],
                    .reads = described(uses.reads, tensors),
                    .writes = described(uses.writes, tensors),
                    .flops = flops_of(program[i], tensors),
                    .bytes = bytes_of(program[i], tensors)});
  }
  return rows;
}

}  // namespace fathom::engine
