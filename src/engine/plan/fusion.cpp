#include "engine/plan/fusion.h"

#include <algorithm>
#include <map>

#include "engine/plan/fusion_rules.h"

namespace fathom::engine {
namespace {

constexpr std::array kTraining{Program::train, Program::train_accumulate};

template <class T>
const T* at(const std::vector<Op>& ops, std::size_t i) {
  return i < ops.size() ? std::get_if<T>(&ops[i]) : nullptr;
}

/// Places of the ops of one kind in a program, by their input tensor: programs of thousands of
/// layers are scanned a fixed number of times, not once per op.
template <class T>
std::map<std::int32_t, std::vector<std::size_t>> places_by_input(const std::vector<Op>& ops) {
  std::map<std::int32_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* op = std::get_if<T>(&ops[i]);
    if (op != nullptr && op->u.exists()) places[op->u.index].push_back(i);
  }
  return places;
}

/// Moves the bias of a Linear to the Activation of its result and the backward that reads it.
void move_biases(std::vector<Op>& ops, const FusionRules& rules) {
  auto activations = places_by_input<Activation>(ops);
  auto backwards = places_by_input<ActivationBackward>(ops);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    auto* linear = std::get_if<Linear>(&ops[i]);
    if (linear == nullptr || !activations.contains(linear->y.index)) continue;
    for (const std::size_t j : activations[linear->y.index]) {
      auto& activation = std::get<Activation>(ops[j]);
      if (j <= i || !rules.takes_bias(*linear, activation)) continue;
      activation.bias = linear->bias;
      for (const std::size_t k : backwards[linear->y.index]) {
        std::get<ActivationBackward>(ops[k]).bias = linear->bias;
      }
      linear->bias = {};
      break;
    }
  }
}

/// By tensor: whether a program fuses the op that writes these slopes, and the one that reads them.
struct SlopeFusion {
  explicit SlopeFusion(std::size_t tensors) : written(tensors), read(tensors) {}
  bool both(TensorId slopes) const { return written[slopes] && read[slopes]; }
  TensorTable<bool> written, read;
};

SlopeFusion fused_slopes(const std::vector<Op>& ops, const FusionRules& rules,
                         std::size_t tensors) {
  SlopeFusion fused(tensors);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* up = at<Linear>(ops, i);
    const auto* activation = at<Activation>(ops, i + 1);
    if (up && activation && activation->slopes.exists()) {
      fused.written[activation->slopes] = rules.match(*up, *activation).has_value();
    }
    const auto *down = at<LinearBackward>(ops, i), *next = at<LinearBackward>(ops, i + 2);
    const auto* backward = at<ActivationBackward>(ops, i + 1);
    if (down && backward && next && backward->slopes.exists()) {
      fused.read[backward->slopes] = rules.match(*down, *backward, *next).has_value();
    }
  }
  return fused;
}

/// The activations that fuse in both directions of training, by the tensors they read and keep.
struct FusedActivations {
  explicit FusedActivations(std::size_t tensors) : inputs(tensors), slopes(tensors) {}
  TensorTable<bool> inputs, slopes;
};

FusedActivations fused_activations(const Programs& programs, const FusionRules& rules,
                                   std::size_t tensors) {
  std::vector<SlopeFusion> training;
  for (const Program which : kTraining) {
    training.push_back(fused_slopes(programs[which], rules, tensors));
  }
  FusedActivations found(tensors);
  for (const Op& op : programs[Program::train]) {
    const auto* activation = std::get_if<Activation>(&op);
    if (activation == nullptr || !activation->slopes.exists()) continue;
    const bool fuses = std::all_of(training.begin(), training.end(), [&](const SlopeFusion& fused) {
      return fused.both(activation->slopes);
    });
    if (!fuses) continue;
    found.inputs[activation->u] = true;
    found.slopes[activation->slopes] = true;
  }
  return found;
}

class Rewriter {
 public:
  Rewriter(std::vector<Op> ops, FusionRules& rules, const FusedActivations& activations,
           const DeviceOffers& offers)
      : ops_(std::move(ops)), rules_(rules), activations_(activations), offers_(offers) {}

  std::vector<Op> run() {
    for (std::size_t i = 0; i < ops_.size();) i += fuse_at(i);
    return std::move(out_);
  }

 private:
  /// Appends what the ops from i on become; returns how many of them that covers.
  std::size_t fuse_at(std::size_t i) {
    if (sum_columns<ActivationBackward>(i) || sum_columns<NormBackward>(i) ||
        sum_columns<AttentionBackward>(i)) {
      return 1;
    }
    if (fuse_forward(i) || fuse_backward(i)) return 2;
    append(ops_[i]);
    return 1;
  }

  /// The op at i also makes the bias gradient of the Linear after it, which then need not.
  template <class Maker>
  bool sum_columns(std::size_t i) {
    const auto* maker = at<Maker>(ops_, i);
    const auto* linear = at<LinearBackward>(ops_, i + 1);
    if (!maker || !linear || !rules_.sums_columns(*maker, *linear)) return false;
    out_.emplace_back(WithBiasGradient<Maker>{*maker, bias_gradient_of(*linear)});
    drop_bias(i + 1);
    return true;
  }

  bool fuse_forward(std::size_t i) {
    const auto* linear = at<Linear>(ops_, i);
    if (linear == nullptr) return false;
    if (const auto* activation = at<Activation>(ops_, i + 1)) {
      if (!activations_.inputs[activation->u]) return false;
      return append_if(rules_.match(*linear, *activation));
    }
    const auto* norm = at<Norm>(ops_, i + 1);
    return norm != nullptr && append_if(rules_.match(*linear, *norm));
  }

  bool fuse_backward(std::size_t i) {
    const auto *linear = at<LinearBackward>(ops_, i), *next = at<LinearBackward>(ops_, i + 2);
    if (linear == nullptr) return false;
    if (const auto* activation = at<ActivationBackward>(ops_, i + 1)) {
      const TensorId slopes = activation->slopes;
      if (next == nullptr || !slopes.exists() || !activations_.slopes[slopes]) return false;
      return append_backward(*linear, rules_.match(*linear, *activation, *next), i + 2);
    }
    const auto* norm = at<NormBackward>(ops_, i + 1);
    return norm != nullptr && append_backward(*linear, rules_.match(*linear, *norm, next), i + 2);
  }

  template <class Fused>
  bool append_if(const std::optional<Fused>& fused) {
    if (fused) out_.emplace_back(*fused);
    return fused.has_value();
  }

  /// The parameter gradients of `linear` stay a separate op.
  template <class Fused>
  bool append_backward(const LinearBackward& linear, const std::optional<Fused>& fused,
                       std::size_t next) {
    if (!fused) return false;
    append_parameter_gradients(linear);
    out_.emplace_back(*fused);
    if (fused->bias.d_bias.exists()) drop_bias(next);
    return true;
  }

  void append_parameter_gradients(LinearBackward linear) {
    linear.dx = {};
    if (linear.makes_parameter_gradients()) out_.emplace_back(linear);
  }

  /// Appends an op as it is; with a second lane, gradients that no op waits for are split off.
  void append(const Op& op) {
    const auto* linear = std::get_if<LinearBackward>(&op);
    const auto* embed = std::get_if<EmbedBackward>(&op);
    if (offers_.second_lane && linear != nullptr) {
      append_parameter_gradients(*linear);
      LinearBackward input = *linear;
      input.d_weight = input.d_bias = {};
      if (input.dx.exists()) out_.emplace_back(input);
    } else if (offers_.second_lane && embed != nullptr && embed->d_table.exists()) {
      EmbedBackward positions = *embed, table = *embed;
      positions.d_table = table.d_positions = {};
      if (positions.d_positions.exists()) out_.emplace_back(positions);
      out_.emplace_back(table);
    } else {
      out_.push_back(op);
    }
  }

  void drop_bias(std::size_t i) { std::get<LinearBackward>(ops_[i]).d_bias = {}; }

  std::vector<Op> ops_, out_;
  FusionRules& rules_;
  const FusedActivations& activations_;
  const DeviceOffers& offers_;
};

}  // namespace

FusedPrograms fuse(Programs programs, const Tensors& tensors, const std::vector<TensorId>& kept,
                   const DeviceOffers& offers) {
  {
    const FusionRules rules(programs, tensors, kept, offers);
    for (std::vector<Op>& ops : programs) move_biases(ops, rules);
  }
  FusionRules rules(programs, tensors, kept, offers);
  const FusedActivations activations = fused_activations(programs, rules, tensors.size());
  FusedPrograms fused;
  for (const Program which : kEnumValues<Program>) {
    fused.programs[which] = Rewriter(programs[which], rules, activations, offers).run();
  }
  fused.unmeasured = rules.unmeasured();
  return fused;
}

}  // namespace fathom::engine
