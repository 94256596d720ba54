#include "engine/plan/fusion_rules.h"

#include <algorithm>

namespace fathom::engine {
namespace {

constexpr std::int64_t kMostRows = 1 << 30;  // kernels count rows of tiles in 32 bits

bool overwrites(GradMode mode) {
  return mode == GradMode::overwrite;
}

/// Whether `norm` makes the gradient of the branch that `branch` made, and its bias needs it.
bool makes_branch_gradient(const NormBackward& norm, const LinearBackward& branch) {
  if (!branch.d_bias.exists()) return false;
  if (norm.d_branch == branch.dy) return overwrites(norm.d_branch_mode);
  return norm.shares_gradient(branch.dy);
}

LinearBackward input_gradient_of(LinearBackward linear) {
  linear.d_weight = linear.d_bias = {};
  return linear;
}

}  // namespace

LinearBackward bias_gradient_of(const LinearBackward& linear) {
  LinearBackward bias = linear;
  bias.dx = bias.d_weight = {};
  return bias;
}

FusionRules::FusionRules(const Programs& programs, const Tensors& tensors,
                         const std::vector<TensorId>& kept, const DeviceOffers& offers)
    : tensors_(tensors), offers_(offers), kept_(tensors.size(), false) {
  for (const TensorId id : kept) kept_[id] = true;
  for (const Program which : kEnumValues<Program>) {
    readers_[which].assign(tensors.size(), 0);
    for (const Op& op : programs[which]) {
      for (const TensorId id : uses_of(op).reads) ++readers_[which][id];
    }
  }
}

bool FusionRules::has_one_reader(TensorId id) const {
  const bool shared = std::any_of(readers_.begin(), readers_.end(),
                                  [&](const auto& readers) { return readers[id] > 1; });
  return !shared && !kept_[id];
}

bool FusionRules::takes_bias(const Linear& linear, const Activation& activation) const {
  if (!offers_.late_bias || !linear.bias.exists()) return false;
  // Evaluation has no backward: there the activation must be the only reader.
  return activation.u == linear.y && readers_[Program::evaluate][linear.y] == 1 && !kept_[linear.y];
}

bool FusionRules::fits(const ActivationOffer& offer, std::int64_t rows, std::int64_t wide,
                       std::int64_t other, ActivationKind kind) const {
  return offer.offered && kind != ActivationKind::swiglu && rows % offer.rows_multiple == 0 &&
         rows < kMostRows && wide % offer.wide_multiple == 0 && wide <= offer.widest &&
         other % offer.other_multiple == 0;
}

std::optional<LinearThenActivation> FusionRules::match(const Linear& linear,
                                                       const Activation& activation) const {
  const Tensor& x = tensors_[linear.x];
  if (activation.u != linear.y || linear.bias.exists() || !has_one_reader(linear.y)) return {};
  if (x.dtype != DType::bf16) return {};
  if (!fits(offers_.activation, x.rows, tensors_[linear.y].cols, x.cols, activation.kind)) {
    return {};
  }
  return LinearThenActivation{linear, activation};
}

std::optional<LinearBackwardThenActivation> FusionRules::match(const LinearBackward& down,
                                                               const ActivationBackward& activation,
                                                               const LinearBackward& up) const {
  if (!down.dx.exists() || activation.dy != down.dx || up.dy != activation.du) return {};
  if (!overwrites(down.dx_mode) || !overwrites(activation.mode)) return {};
  if (!activation.slopes.exists() || !has_one_reader(down.dx)) return {};
  const Tensor& x = tensors_[down.x];
  if (x.dtype != DType::bf16 || type(activation.du) != DType::bf16) return {};
  if (!fits(offers_.activation, x.rows, x.cols, tensors_[down.weight].rows, activation.kind)) {
    return {};
  }
  return LinearBackwardThenActivation{input_gradient_of(down), activation, bias_gradient_of(up)};
}

bool FusionRules::fits(const LinearNormShape& shape) const {
  const NormOffer& offer = offers_.norm;
  const auto& limits = shape.backward ? offer.backward : offer.forward;
  const auto limit = std::find_if(limits.begin(), limits.end(), [&](const NormOffer::Limit& each) {
    return shape.width <= each.widest;
  });
  return limit != limits.end() && shape.depth <= limit->deepest &&
         shape.width % offer.width_multiple == 0 && shape.depth % offer.depth_multiple == 0 &&
         shape.rows < kMostRows;
}

bool FusionRules::pays(const LinearNormShape& shape) {
  const auto known = std::find_if(offers_.measured.begin(), offers_.measured.end(),
                                  [&](const MeasuredShape& each) { return each.shape == shape; });
  if (known != offers_.measured.end()) return known->pays;
  if (std::find(unmeasured_.begin(), unmeasured_.end(), shape) == unmeasured_.end()) {
    unmeasured_.push_back(shape);
  }
  return offers_.unmeasured_pays;
}

std::optional<LinearThenNorm> FusionRules::match(const Linear& linear, const Norm& norm) {
  if (norm.branch != linear.y || !norm.gain.exists() || !has_one_reader(linear.y)) return {};
  if (type(linear.x) != DType::bf16 || type(norm.y) != DType::bf16 || type(norm.x) != DType::f32) {
    return {};
  }
  const LinearNormShape shape{.rows = tensors_[linear.x].rows,
                              .width = tensors_[norm.x].cols,
                              .depth = tensors_[linear.x].cols,
                              .rms = norm.kind == NormKind::rms};
  if (!fits(shape) || !pays(shape)) return {};
  return LinearThenNorm{linear, norm};
}

std::optional<LinearBackwardThenNorm> FusionRules::match(const LinearBackward& linear,
                                                         const NormBackward& norm,
                                                         const LinearBackward* branch) {
  if (!linear.dx.exists() || norm.dy != linear.dx || !has_one_reader(linear.dx)) return {};
  if (!overwrites(linear.dx_mode) || !overwrites(norm.dx_mode) || !overwrites(norm.d_branch_mode)) {
    return {};
  }
  const Tensor& r = tensors_[norm.r];
  if (!norm.gain.exists() || !norm.incoming.exists() || !norm.dx.exists()) return {};
  if (r.dtype != DType::f32) return {};
  for (const TensorId id : {linear.dy, norm.incoming, norm.dx, norm.d_branch}) {
    if (!is_bf16_or_none(id)) return {};
  }
  const bool sums = branch != nullptr && makes_branch_gradient(norm, *branch);
  const LinearNormShape shape{.rows = r.rows,
                              .width = r.cols,
                              .depth = tensors_[linear.weight].rows,
                              .backward = true,
                              .rms = norm.kind == NormKind::rms,
                              .branch_sums = sums,
                              .branch = norm.d_branch.exists()};
  if (!fits(shape) || !pays(shape)) return {};
  return LinearBackwardThenNorm{input_gradient_of(linear), norm,
                                sums ? bias_gradient_of(*branch) : LinearBackward{}};
}

bool FusionRules::sums_columns(const ActivationBackward& maker,
                               const LinearBackward& linear) const {
  return offers_.bias_gradient.activation && linear.d_bias.exists() && maker.du == linear.dy &&
         overwrites(maker.mode);
}

bool FusionRules::sums_columns(const NormBackward& maker, const LinearBackward& linear) const {
  const BiasGradientOffer& offer = offers_.bias_gradient;
  const Tensor& r = tensors_[maker.r];
  if (r.cols > offer.norm_widest || r.cols % offer.norm_multiple != 0) return false;
  if (r.rows >= offer.norm_most_rows || !makes_branch_gradient(maker, linear)) return false;
  // All gradients have one type, and it is not wider than r's.
  for (const TensorId id : {maker.incoming, maker.dx, maker.d_branch}) {
    if (id.exists() && type(id) != type(maker.dy)) return false;
  }
  return r.dtype != DType::bf16 || type(maker.dy) == DType::bf16;
}

bool FusionRules::sums_columns(const AttentionBackward& maker, const LinearBackward& linear) const {
  const auto& offer = offers_.bias_gradient.attention;
  const AttentionShape& s = maker.shape;
  if (!linear.d_bias.exists() || maker.d_qkv != linear.dy || type(maker.qkv) != DType::bf16) {
    return false;
  }
  // With rotary positions dq and dk are rotated back only after they have been summed.
  return s.kind == AttentionKind::softmax && !s.has_pattern() && s.rotary_base == 0 &&
         s.heads == s.key_heads && s.scale > 0 && s.head_size % 8 == 0 &&
         s.head_size >= offer.least_head_size && s.head_size <= offer.most_head_size &&
         s.context >= offer.least_context && s.batch * s.key_heads >= offer.least_heads;
}

}  // namespace fathom::engine
