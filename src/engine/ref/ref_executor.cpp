#include "engine/ref/ref_executor.h"

#include "engine/ref/ref_ops.h"
#include "engine/require.h"

namespace fathom::engine {

RefExecutor::RefExecutor(const StepPlan& plan) : plan_(plan), memory_(plan.tensors().size()) {
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const Tensor& tensor = plan.tensors()[i];
    // The whole storages of parameters and gradients are accessed through their parts.
    const TensorId id = plan.tensors().id_of(i);
    if (id == plan.whole(Storage::parameter) || id == plan.whole(Storage::gradient)) continue;
    memory_[i].assign(static_cast<std::size_t>(tensor.size()), 0.0);
  }
}

double* RefExecutor::data(TensorId id) {
  return id.exists() ? memory_[id].data() : nullptr;
}

void RefExecutor::write(TensorId id, std::span<const float> values) {
  auto& target = memory_[id];
  require(target.size() == values.size(), "write: sizes differ");
  target.assign(values.begin(), values.end());
}

void RefExecutor::write_tokens(TensorId id, std::span<const std::int32_t> values) {
  auto& target = memory_[id];
  require(target.size() == values.size(), "write: sizes differ");
  target.assign(values.begin(), values.end());
}

void RefExecutor::read(TensorId id, std::span<float> values) const {
  const auto& source = memory_[id];
  require(source.size() == values.size(), "read: sizes differ");
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(source[i]);
}

void RefExecutor::run(Program program, const StepScalars& scalars) {
  const ref::Context context{plan_, *this, scalars};
  for (const Op& op : plan_.program(program)) {
    std::visit([&](const auto& typed) { ref::run(typed, context); }, op);
  }
}

std::int64_t RefExecutor::bytes() const {
  std::size_t total = 0;
  for (const auto& tensor : memory_) total += tensor.size() * sizeof(double);
  return static_cast<std::int64_t>(total);
}

}  // namespace fathom::engine
