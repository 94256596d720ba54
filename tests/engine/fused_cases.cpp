// Small plans in which the fusion pass finds every fused op, forward and back.
#include "engine/op_case.h"

namespace fathom::engine {
namespace {

constexpr std::int64_t kFusedRows = 12;

/// A device that fuses whatever has the right types and readers.
PlanTarget everything_fuses() {
  PlanTarget target;
  DeviceOffers& offers = target.offers;
  offers = hopper_offers(1 << 20);
  offers.activation = {.offered = true, .widest = 1 << 20};
  offers.norm = {.forward = {{1 << 20, 1 << 20}}, .backward = {{1 << 20, 1 << 20}}};
  offers.bias_gradient.norm_multiple = 1;
  offers.bias_gradient.attention = {.most_head_size = 1 << 20, .least_heads = 1};
  return target;
}

/// Appends ops on bf16, whose parameters are f32 and can be read.
class Builder {
 public:
  explicit Builder(StepPlan& plan) : plan_(plan) { plan.narrow_gradients(); }

  TensorId linear(const std::string& name, TensorId x, std::int64_t outs) {
    const TensorId weight = plan_.parameter(name, outs, plan_.tensor(x).cols);
    const TensorId bias = plan_.parameter(name + " bias", 1, outs);
    const TensorId y = activation(name + " result", outs);
    plan_.append(Linear{x, plan_.compute_copy(weight, DType::bf16), bias, y});
    return y;
  }
  TensorId activation(const std::string& name, std::int64_t cols, DType type = DType::bf16) {
    return plan_.activation(name, type, kFusedRows, cols);
  }
  /// A stream in f32 that depends on a parameter.
  TensorId stream(std::int64_t cols) {
    const TensorId tokens = plan_.input("tokens", DType::i32, kFusedRows, 1);
    const TensorId table = plan_.parameter("table", 7, cols);
    const TensorId x = activation("stream", cols, DType::f32);
    plan_.append(Embed{tokens, table, {}, x, 1});
    return x;
  }
  struct Normed {
    TensorId r, y;
  };
  Normed norm(const std::string& name, TensorId x, TensorId branch, Norm settings) {
    const std::int64_t cols = plan_.tensor(x).cols;
    settings.x = x;
    settings.branch = branch;
    settings.gain = plan_.parameter(name + " gain", 1, cols);
    settings.bias =
        settings.kind == NormKind::layer ? plan_.parameter(name + " shift", 1, cols) : TensorId{};
    if (branch.exists()) settings.r = activation(name + " sum", cols, DType::f32);
    settings.y = activation(name, cols);
    settings.stats = activation(name + " statistics", 2, DType::f32);
    if (!branch.exists()) settings.stream_scale = 1;
    plan_.append(settings);
    return {settings.r, settings.y};
  }

 private:
  StepPlan& plan_;
};

OpCase fused_activation(const std::string& name, ActivationKind kind) {
  const auto build = [=](StepPlan& plan, TensorId& y) {
    Builder builder(plan);
    const TensorId x = builder.norm("norm", builder.stream(8), {}, {}).y;
    const TensorId u = builder.linear("up", x, 24);
    const std::int64_t outs = kind == ActivationKind::swiglu ? 12 : 24;
    const TensorId a = builder.activation("activated", outs);
    const TensorId slopes = kind == ActivationKind::swiglu
                                ? TensorId{}
                                : plan.activation("slopes", DType::u8, kFusedRows, outs);
    plan.append(Activation{u, a, kind, slopes});
    y = builder.linear("down", a, 8);
  };
  return {"fused_activation_" + name, build, 1e-5, -1, 1, everything_fuses()};
}

/// Two branches: the first norm has a gradient that comes in by the stream.
OpCase fused_norm(const std::string& name, const Norm& settings) {
  const auto build = [=](StepPlan& plan, TensorId& y) {
    Builder builder(plan);
    const TensorId x = builder.stream(8);
    const TensorId h = builder.norm("first", x, {}, settings).y;
    const auto second = builder.norm("second", x, builder.linear("a", h, 8), settings);
    const TensorId b = builder.linear("b", second.y, 8);
    y = builder.norm("third", second.r, b, settings).y;
  };
  return {"fused_norm_" + name, build, 1e-5, -1, 1, everything_fuses()};
}

OpCase fused_attention() {
  const auto build = [](StepPlan& plan, TensorId& y) {
    Builder builder(plan);
    AttentionShape shape{2, kFusedRows / 2, 2, 2, 8};
    shape.scale = 0.35f;
    const TensorId x = builder.norm("norm", builder.stream(8), {}, {}).y;
    const TensorId qkv = builder.linear("qkv", x, shape.qkv_cols());
    y = builder.activation("y", shape.heads * shape.head_size);
    const TensorId stats =
        plan.activation("stats", DType::f32, shape.batch * shape.heads, shape.context);
    plan.append(Attention{qkv, y, stats, shape});
  };
  return {"fused_attention", build, 1e-5, -1, 1, everything_fuses()};
}

}  // namespace

std::vector<OpCase> fused_cases() {
  Norm rms, scaled;
  rms.kind = NormKind::rms;
  scaled.stream_scale = 0.5f;
  scaled.branch_scale = 1.5f;
  return {fused_activation("relu", ActivationKind::relu),
          fused_activation("gelu", ActivationKind::gelu),
          fused_activation("gelu_tanh", ActivationKind::gelu_tanh),
          fused_activation("swiglu", ActivationKind::swiglu),
          fused_norm("layer", {}),
          fused_norm("rms", rms),
          fused_norm("scaled", scaled),
          fused_attention()};
}

}  // namespace fathom::engine
