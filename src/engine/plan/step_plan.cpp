#include "engine/plan/step_plan.h"

#include <fmt/format.h>

#include "core/error.h"
#include "engine/plan/alignment.h"
#include "engine/plan/differentiator.h"
#include "engine/plan/fusion.h"

namespace fathom::engine {

TensorId StepPlan::add(Tensor tensor) {
  if (tensor.rows < 1 || tensor.cols < 1) {
    throw InternalError(
        fmt::format("tensor {} has shape [{}, {}]", tensor.name, tensor.rows, tensor.cols));
  }
  return tensors_.add(std::move(tensor));
}

TensorId StepPlan::place(Tensor tensor) {
  std::int64_t& end = storage_bytes_[tensor.storage];
  tensor.offset_bytes = end;
  end += aligned(tensor.bytes());
  return add(std::move(tensor));
}

TensorId StepPlan::parameter(const std::string& name, std::int64_t rows, std::int64_t cols) {
  const TensorId id = place({name, DType::f32, rows, cols, Storage::parameter, 0, {}});
  parameters_.push_back(id);
  gradients_[id.index] =
      place({"d(" + name + ")", DType::f32, rows, cols, Storage::gradient, 0, {}});
  return id;
}

TensorId StepPlan::compute_copy(TensorId parameter, DType dtype) {
  if (dtype == DType::f32) return parameter;
  if (const auto found = copies_.find(parameter.index); found != copies_.end()) {
    return found->second;
  }
  const Tensor master = tensor(parameter);
  return copies_[parameter.index] = place(
             {master.name, dtype, master.rows, master.cols, Storage::compute_copy, 0, parameter});
}

TensorId StepPlan::input(const std::string& name, DType dtype, std::int64_t rows,
                         std::int64_t cols) {
  return place({name, dtype, rows, cols, Storage::input, 0, {}});
}

TensorId StepPlan::output(const std::string& name, std::int64_t rows, std::int64_t cols) {
  return place({name, DType::f32, rows, cols, Storage::output, 0, {}});
}

TensorId StepPlan::activation(const std::string& name, DType dtype, std::int64_t rows,
                              std::int64_t cols) {
  return add({name, dtype, rows, cols, Storage::activation, -1, {}});
}

void StepPlan::append(ForwardOp op) {
  if (finished_) throw InternalError("op appended to a finished plan");
  std::visit([&](const auto& typed) { check(typed, *this); }, op);
  forward_.push_back(op);
}

void StepPlan::seed_gradient(TensorId y, TensorId dy) {
  seeds_.emplace_back(y, dy);
}

void StepPlan::keep(TensorId activation) {
  kept_.push_back(activation);
}

void StepPlan::set_adamw(float beta1, float beta2, std::vector<AdamWGroup> groups) {
  beta1_ = beta1;
  beta2_ = beta2;
  groups_ = std::move(groups);
  has_adamw_ = true;
  norm_ = output("gradient norm", 1, 1);
}

void StepPlan::set_prox(ProxKind kind, std::vector<ProxGroup> groups) {
  prox_.kind = kind;
  prox_.groups = std::move(groups);
}

void StepPlan::build_update_programs() {
  const std::int64_t floats = storage_bytes(Storage::parameter) / bytes_of(DType::f32);
  if (floats == 0) return;
  const auto whole = [&](const char* name, Storage storage) {
    storage_bytes_[storage] = floats * bytes_of(DType::f32);
    wholes_[storage] = add({name, DType::f32, 1, floats, storage, 0, {}});
  };
  whole("all parameters", Storage::parameter);
  whole("all gradients", Storage::gradient);
  CopyParameters copy;
  for (const auto& [parameter, id] : copies_) copy.copies.push_back(id);
  auto& update = programs_[Program::update];
  if (has_adamw_) {
    whole("first moments", Storage::moment1);
    whole("second moments", Storage::moment2);
    update.emplace_back(SquaredNorm{this->whole(Storage::gradient), norm_});
    update.emplace_back(AdamW{this->whole(Storage::parameter), this->whole(Storage::gradient),
                              this->whole(Storage::moment1), this->whole(Storage::moment2), norm_,
                              groups_, beta1_, beta2_});
    if (!prox_.groups.empty()) {
      prox_.parameters = this->whole(Storage::parameter);
      update.emplace_back(prox_);
    }
  }
  if (copy.copies.empty()) return;
  update.emplace_back(copy);
  programs_[Program::refresh].emplace_back(copy);
}

void StepPlan::derive_programs() {
  auto& evaluate = programs_[Program::evaluate];
  for (const ForwardOp& op : forward_) {
    std::visit([&](const auto& typed) { evaluate.emplace_back(typed); }, op);
    if (auto* dropout = std::get_if<Dropout>(&evaluate.back())) dropout->mask.probability = 0;
    if (auto* activation = std::get_if<Activation>(&evaluate.back())) activation->slopes = {};
  }
  programs_[Program::train] = Differentiator(*this, GradMode::overwrite).derive();
  programs_[Program::train_accumulate] = Differentiator(*this, GradMode::accumulate).derive();
}

void StepPlan::fuse_programs(const PlanTarget& target) {
  offers_ = target.offers;
  FusedPrograms fused = fuse(programs_, tensors_, kept_, offers_);
  while (!fused.unmeasured.empty() && target.measure) {
    const std::vector<bool> pays = target.measure(fused.unmeasured);
    if (pays.size() != fused.unmeasured.size()) throw InternalError("plan: answers are missing");
    for (std::size_t i = 0; i < pays.size(); ++i) {
      offers_.measured.push_back({fused.unmeasured[i], pays[i]});
    }
    fused = fuse(programs_, tensors_, kept_, offers_);
  }
  programs_ = std::move(fused.programs);
}

void StepPlan::narrow_biases() {
  for (std::vector<Op>& program : programs_) {
    for (Op& op : program) {
      auto* linear = std::get_if<Linear>(&op);
      if (linear == nullptr || !linear->bias.exists()) continue;
      if (tensor(linear->bias).storage != Storage::parameter) continue;
      linear->bias = compute_copy(linear->bias, tensor(linear->y).dtype);
    }
  }
}

void StepPlan::finish(const PlanTarget& target) {
  if (finished_) throw InternalError("plan finished twice");
  derive_programs();
  // The plan may use as much memory as its unfused ops would need.
  const std::int64_t budget =
      target.offers.second_lane ? lay_out_activations(tensors_, programs_, kept_) : 0;
  fuse_programs(target);
  if (offers_.narrow_biases) narrow_biases();
  build_update_programs();
  for (const Program which : kEnumValues<Program>) {
    for (const Op& op : programs_[which]) {
      lanes_[which].push_back(lane_of(op, tensors_, offers_));
    }
  }
  storage_bytes_[Storage::activation] =
      lay_out_activations(tensors_, programs_, kept_, lanes_, budget);
  finished_ = true;
}

TensorId StepPlan::gradient(TensorId id) const {
  const auto found = gradients_.find(id.index);
  return found == gradients_.end() ? TensorId{} : found->second;
}

TensorId StepPlan::find(const std::string& name) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].name == name && !tensors_[i].master.exists()) return tensors_.id_of(i);
  }
  return {};
}

}  // namespace fathom::engine
