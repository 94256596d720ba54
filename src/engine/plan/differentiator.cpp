#include "engine/plan/differentiator.h"

#include <algorithm>

namespace fathom::engine {
namespace {

Uses uses_of_forward(const ForwardOp& op) {
  return std::visit([](const auto& typed) { return typed.uses(); }, op);
}

}  // namespace

Differentiator::Differentiator(StepPlan& plan, GradMode parameter_mode)
    : plan_(plan), parameter_mode_(parameter_mode) {
  find_needed();
  for (const auto& [y, dy] : plan_.seeds_) {
    plan_.gradients_[y.index] = dy;
    ready_.insert(y.index);
  }
}

void Differentiator::find_needed() {
  needed_.assign(plan_.tensors_.size(), false);
  for (std::size_t i = 0; i < needed_.size(); ++i) {
    const Storage storage = plan_.tensors_[i].storage;
    needed_[i] = storage == Storage::parameter || storage == Storage::compute_copy;
  }
  for (const ForwardOp& op : plan_.forward_) {
    const Uses uses = uses_of_forward(op);
    const bool any =
        std::any_of(uses.reads.begin(), uses.reads.end(), [&](TensorId id) { return needed(id); });
    for (const TensorId id : uses.writes) needed_[id] = any;
  }
}

TensorId Differentiator::incoming(TensorId y) const {
  if (!y.exists() || !ready_.contains(y.index)) return {};
  return plan_.gradients_.at(y.index);
}

Differentiator::Slot Differentiator::slot(TensorId x) {
  if (!x.exists() || !needed(x)) return {};
  const Tensor tensor = plan_.tensor(x);
  if (tensor.master.exists()) return slot(tensor.master);
  const bool is_parameter = tensor.storage == Storage::parameter;
  if (!plan_.gradients_.contains(x.index)) {
    const DType dtype = plan_.narrow_gradients_ ? DType::bf16 : tensor.dtype;
    plan_.gradients_[x.index] =
        plan_.activation("d(" + tensor.name + ")", dtype, tensor.rows, tensor.cols);
  }
  const bool first = ready_.insert(x.index).second;
  const GradMode first_mode = is_parameter ? parameter_mode_ : GradMode::overwrite;
  return {plan_.gradients_.at(x.index), first ? first_mode : GradMode::accumulate};
}

bool Differentiator::share(TensorId x, TensorId source, TensorId gradient) {
  if (!needed(x) || ready_.contains(x.index)) return false;
  if (plan_.tensor(x).storage != Storage::activation) return false;
  if (plan_.tensor(source).storage != Storage::activation) return false;
  if (plan_.tensor(x).dtype != plan_.tensor(gradient).dtype) return false;
  // Between here and the producer of x, no other op may read `source`.
  for (std::size_t i = current_; i-- > 0;) {
    const Uses uses = uses_of_forward(plan_.forward_[i]);
    if (contains(uses.writes, x)) {
      plan_.gradients_[x.index] = gradient;
      ready_.insert(x.index);
      return true;
    }
    if (contains(uses.reads, source)) return false;
  }
  return false;
}

std::vector<Op> Differentiator::derive() {
  for (current_ = plan_.forward_.size(); current_-- > 0;) {
    // A copy: deriving may add tensors, never forward ops, but the variant is visited by reference.
    const ForwardOp op = plan_.forward_[current_];
    std::visit([&](const auto& typed) { differentiate(typed, *this); }, op);
  }
  std::vector<Op> program;
  for (std::size_t i = 0; i < plan_.forward_.size(); ++i) {
    if (replaced_.contains(i)) continue;
    std::visit([&](const auto& typed) { program.emplace_back(typed); }, plan_.forward_[i]);
  }
  program.insert(program.end(), ops_.begin(), ops_.end());
  return program;
}

}  // namespace fathom::engine
