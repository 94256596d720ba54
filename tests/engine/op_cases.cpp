#include "engine/op_case.h"

#include <cmath>

namespace fathom::engine {
namespace {

constexpr std::int64_t kRows = 12;

OpCase embed_case(bool positions) {
  return {positions ? "embed_positions" : "embed", [=](StepPlan& plan, TensorId& y) {
            const TensorId tokens = plan.input("tokens", DType::i32, kRows, 1);
            const TensorId table = plan.parameter("table", 7, 19);
            const TensorId rows = positions ? plan.parameter("positions", 4, 19) : TensorId{};
            y = plan.activation("y", DType::f32, kRows, 19);
            plan.append(Embed{tokens, table, rows, y, 1.5f});
          }};
}

OpCase add_positions_case() {
  return {"add_positions", [](StepPlan& plan, TensorId& y) {
            const TensorId x = plan.parameter("x", kRows, 19);
            const TensorId rows = plan.parameter("positions", 4, 19);
            y = plan.activation("y", DType::f32, kRows, 19);
            plan.append(AddPositions{x, rows, y});
          }};
}

OpCase linear_case(bool bias) {
  return {bias ? "linear_bias" : "linear", [=](StepPlan& plan, TensorId& y) {
            const TensorId x = plan.parameter("x", kRows, 17);
            const TensorId w = plan.parameter("w", 23, 17);
            const TensorId b = bias ? plan.parameter("b", 1, 23) : TensorId{};
            y = plan.activation("y", DType::f32, kRows, 23);
            plan.append(Linear{x, w, b, y});
          }};
}

/// Groups of a row with its bias and a column, of which the second becomes zero.
OpCase prox_case(const std::string& name, ProxKind kind, float strength) {
  return {
      "prox_" + name, [=](StepPlan& plan, TensorId& y) {
        const TensorId x = plan.parameter("x", kRows, 17);
        const TensorId w = plan.parameter("w", 23, 17);
        const TensorId b = plan.parameter("b", 1, 23);
        y = plan.activation("y", DType::f32, kRows, 23);
        plan.append(Linear{x, w, b, y});
        std::vector<ProxGroup> groups;
        for (std::int64_t g = 0; g < 4; ++g) {
          groups.push_back({{{w, 3 * g, 3, 0, 17}, {b, 0, 1, 3 * g, 3}, {x, 0, kRows, 2 * g, 2}},
                            g == 1 ? 100 * strength : strength});
        }
        plan.set_prox(kind, groups);
      }};
}

/// Two consumers of one tensor: the second contribution to its gradient accumulates.
OpCase shared_input_case() {
  return {"linear_shared_input", [](StepPlan& plan, TensorId& y) {
            const TensorId x = plan.parameter("x", kRows, 16);
            const TensorId w = plan.parameter("w", 16, 16);
            const TensorId h = plan.activation("h", DType::f32, kRows, 16);
            const TensorId a = plan.activation("a", DType::f32, kRows, 16);
            const TensorId g = plan.activation("g", DType::f32, kRows, 16);
            y = plan.activation("y", DType::f32, kRows, 16);
            plan.append(Linear{x, w, {}, h});
            plan.append(Linear{h, w, {}, a});
            plan.append(Activation{h, g, ActivationKind::gelu});
            plan.append(Residual{a, g, y, 0.5f, 2.0f});
          }};
}

OpCase activation_case(const std::string& name, ActivationKind kind) {
  const std::int64_t inputs = kind == ActivationKind::swiglu ? 2 : 1;
  return {"activation_" + name,
          [=](StepPlan& plan, TensorId& y) {
            const TensorId u = plan.parameter("u", kRows, 21 * inputs);
            y = plan.activation("y", DType::f32, kRows, 21);
            plan.append(Activation{u, y, kind});
          },
          1e-5, -4, 4};
}

OpCase norm_case(const std::string& name, NormKind kind, bool branch, float stream_scale,
                 float branch_scale, std::int64_t width, bool gained = true) {
  return {
      "norm_" + name, [=](StepPlan& plan, TensorId& y) {
        const TensorId x = plan.parameter("x", kRows, width);
        const TensorId b = branch ? plan.parameter("branch", kRows, width) : TensorId{};
        const TensorId gain = gained ? plan.parameter("gain", 1, width) : TensorId{};
        const TensorId bias =
            gained && kind == NormKind::layer ? plan.parameter("bias", 1, width) : TensorId{};
        const TensorId r = branch ? plan.activation("r", DType::f32, kRows, width) : TensorId{};
        const TensorId stats = plan.activation("stats", DType::f32, kRows, 2);
        const TensorId h = plan.activation("h", DType::f32, kRows, width);
        plan.append(Norm{x, b, gain, bias, r, h, stats, kind, 1e-5f, stream_scale, branch_scale});
        // The stream goes on beside the normalised value, as in a pre-norm block.
        y = plan.activation("y", DType::f32, kRows, width);
        plan.append(Residual{branch ? r : x, h, y, 0.5f, 1.0f});
      }};
}

OpCase residual_case() {
  return {"residual", [](StepPlan& plan, TensorId& y) {
            const TensorId x = plan.parameter("x", kRows, 33);
            const TensorId b = plan.parameter("branch", kRows, 33);
            y = plan.activation("y", DType::f32, kRows, 33);
            plan.append(Residual{x, b, y, 1.25f, 0.75f});
          }};
}

OpCase attention_case(const std::string& name, AttentionShape shape) {
  return {"attention_" + name, [=](StepPlan& plan, TensorId& y) {
            const std::int64_t rows = shape.batch * shape.context;
            const TensorId x = plan.parameter("qkv", rows, shape.qkv_cols());
            const TensorId zero = plan.parameter("zero", rows, shape.qkv_cols());
            const TensorId qkv = plan.activation("qkv sum", DType::f32, rows, shape.qkv_cols());
            plan.append(Residual{x, zero, qkv, 1.0f, 0.0f});
            y = plan.activation("y", DType::f32, rows, shape.heads * shape.head_size);
            const TensorId stats = plan.activation("stats", DType::f32, shape.batch * shape.heads,
                                                   shape.context * shape.stats_of_row());
            plan.append(Attention{qkv, y, stats, shape});
          }};
}

OpCase dropout_case() {
  return {"dropout", [](StepPlan& plan, TensorId& y) {
            const TensorId x = plan.parameter("x", kRows, 37);
            y = plan.activation("y", DType::f32, kRows, 37);
            plan.append(Dropout{x, y, {0.3f, 11, 5}});
          }};
}

OpCase head_loss_case(bool bias, std::int64_t classes) {
  return {"head_loss_" + std::to_string(classes) + (bias ? "_bias" : ""),
          [=](StepPlan& plan, TensorId&) {
            const TensorId x = plan.parameter("x", kRows, 16);
            const TensorId w = plan.parameter("w", classes, 16);
            const TensorId b = bias ? plan.parameter("b", 1, classes) : TensorId{};
            const TensorId targets = plan.input("targets", DType::i32, kRows, 1);
            const TensorId losses = plan.output("losses", kRows, 1);
            const TensorId loss = plan.output("loss", 1, 1);
            plan.append(HeadLoss{x, w, b, targets, losses, loss, 0.8f});
          }};
}

OpCase keys_case(const std::string& name, KeyMap map, std::int64_t weight_rows,
                 std::int64_t weight_cols) {
  return {"keys_" + name, [=](StepPlan& plan, TensorId& y) {
            const KeyShape shape{2, 6, 4, 2, 5, map, 2};
            const TensorId x = plan.parameter("qkv", 12, shape.qkv_cols());
            const TensorId zero = plan.parameter("zero", 12, shape.qkv_cols());
            const TensorId weight = plan.parameter("weight", weight_rows, weight_cols);
            const TensorId qkv = plan.activation("qkv sum", DType::f32, 12, shape.qkv_cols());
            plan.append(Residual{x, zero, qkv, 1.0f, 0.0f});
            y = plan.activation("y", DType::f32, 12, shape.qkv_cols());
            plan.append(MapKeys{qkv, weight, y, shape});
          }};
}

/// A layer of 6 columns on a stream of 17, perhaps round its end.
OpCase slice_case(std::int64_t first) {
  return {"slice_" + std::to_string(first), [=](StepPlan& plan, TensorId& y) {
            const TensorId x = plan.parameter("x", kRows, 17);
            const TensorId zero = plan.parameter("zero", kRows, 17);
            const TensorId w = plan.parameter("w", 6, 6);
            const TensorId whole = plan.activation("whole", DType::f32, kRows, 17);
            const TensorId part = plan.activation("part", DType::f32, kRows, 6);
            const TensorId branch = plan.activation("branch", DType::f32, kRows, 6);
            y = plan.activation("y", DType::f32, kRows, 17);
            plan.append(Residual{x, zero, whole, 1.0f, 0.5f});
            plan.append(Slice{whole, part, first});
            plan.append(Linear{part, w, {}, branch});
            plan.append(AddSlice{whole, branch, y, first, 0.75f});
          }};
}

/// Short ones, in which every element of a block of 64 counts, and ones of several blocks.
std::vector<OpCase> pattern_cases() {
  AttentionShape strided{2, 11, 2, 1, 8, AttentionKind::softmax, MaskKind::causal, 2, 0.35f, 0};
  strided.stride = 3;
  AttentionShape longformer = strided;
  longformer.mask = MaskKind::bidirectional;
  longformer.stride = 0;
  longformer.global_tokens = 2;
  AttentionShape bigbird{1, 150,  1, 1, 8, AttentionKind::softmax, MaskKind::bidirectional,
                         5, 0.35f};
  bigbird.global_tokens = 1;
  bigbird.random_blocks = 2;
  bigbird.block = 16;
  AttentionShape causal = bigbird;
  causal.mask = MaskKind::causal;
  causal.rotary_base = 1e4f;
  AttentionShape raw = strided;
  raw.kind = AttentionKind::none;
  AttentionShape linear = longformer;
  linear.kind = AttentionKind::linear;
  AttentionShape blocks = strided;
  blocks.window = blocks.stride = 0;
  blocks.own_block = true;
  blocks.block = 4;
  AttentionShape limited = longformer;
  limited.window = limited.global_tokens = 0;
  limited.key_limit = 5;
  return {attention_case("own_block", blocks),     attention_case("key_limit", limited),
          attention_case("strided", strided),      attention_case("window_global", longformer),
          attention_case("drawn_blocks", bigbird), attention_case("drawn_blocks_causal", causal),
          attention_case("strided_scores", raw),   attention_case("window_global_linear", linear)};
}

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> cases;
  AttentionShape base{2, 9, 2, 2, 8, AttentionKind::softmax, MaskKind::causal, 0, 0.35f, 0};
  const auto add = [&](const std::string& name, auto change) {
    AttentionShape shape = base;
    change(shape);
    cases.push_back(attention_case(name, shape));
  };
  add("causal", [](AttentionShape&) {});
  add("bidirectional", [](AttentionShape& s) { s.mask = MaskKind::bidirectional; });
  add("strict", [](AttentionShape& s) { s.mask = MaskKind::strict; });
  add("grouped", [](AttentionShape& s) { s.heads = 4; });
  add("rotary", [](AttentionShape& s) { s.rotary_base = 10000; });
  add("local", [](AttentionShape& s) { s.window = 3; });
  add("local_bidirectional", [](AttentionShape& s) {
    s.window = 3;
    s.mask = MaskKind::bidirectional;
  });
  add("eq3", [](AttentionShape& s) {
    s.kind = AttentionKind::none;
    s.mask = MaskKind::bidirectional;
  });
  add("linear", [](AttentionShape& s) { s.kind = AttentionKind::linear; });
  add("linear_rotary", [](AttentionShape& s) {
    s.kind = AttentionKind::linear;
    s.rotary_base = 100;
  });
  add("odd_head", [](AttentionShape& s) { s.head_size = 5; });
  add("long", [](AttentionShape& s) {
    s.batch = 1;
    s.context = 150;
    s.heads = 1;
    s.key_heads = 1;
    s.head_size = 16;
  });
  add("long_local_strict", [](AttentionShape& s) {
    s.batch = 1;
    s.context = 150;
    s.heads = 1;
    s.key_heads = 1;
    s.head_size = 20;
    s.window = 70;
    s.mask = MaskKind::strict;
  });
  for (const auto kind :
       {AttentionKind::normalised, AttentionKind::linear, AttentionKind::performer}) {
    for (const auto mask : {MaskKind::causal, MaskKind::bidirectional, MaskKind::strict}) {
      for (const bool several : {false, true}) {
        AttentionShape shape{2, several ? 140 : 9, 2, 1, several ? 8 : 5, kind, mask, 0, 0.35f};
        if (kind == AttentionKind::performer) shape.features = 11;
        if (several) shape.rotary_base = 100;
        if (several) shape.batch = 1;
        cases.push_back(attention_case(
            std::string(name_of(kind)) + "_" + name_of(mask) + (several ? "_chunks" : ""), shape));
      }
    }
  }
  add("normalised_local", [](AttentionShape& s) {
    s.kind = AttentionKind::normalised;
    s.window = 3;
  });
  for (OpCase& pattern : pattern_cases()) cases.push_back(std::move(pattern));
  return cases;
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases{
      embed_case(false),
      embed_case(true),
      add_positions_case(),
      linear_case(false),
      linear_case(true),
      shared_input_case(),
      activation_case("relu", ActivationKind::relu),
      activation_case("gelu", ActivationKind::gelu),
      activation_case("gelu_tanh", ActivationKind::gelu_tanh),
      activation_case("swiglu", ActivationKind::swiglu),
      norm_case("layer", NormKind::layer, false, 1, 1, 32),
      norm_case("layer_odd", NormKind::layer, false, 1, 1, 27),
      norm_case("layer_branch", NormKind::layer, true, 1, 1, 32),
      norm_case("layer_branch_scaled", NormKind::layer, true, 1.5f, 0.25f, 27),
      norm_case("layer_bare", NormKind::layer, true, 1, 1, 32, false),
      norm_case("layer_bare_odd", NormKind::layer, true, 1, 1, 27, false),
      norm_case("rms", NormKind::rms, false, 1, 1, 32),
      norm_case("rms_bare", NormKind::rms, false, 1, 1, 32, false),
      norm_case("rms_branch_scaled", NormKind::rms, true, 1, 0.5f, 45),
      residual_case(),
      keys_case("smear", KeyMap::smear, 1, 2),
      keys_case("project", KeyMap::project, 4, 6),
      keys_case("synthesise", KeyMap::synthesise, 6, 10),
      keys_case("sort", KeyMap::sort, 3, 10),
      slice_case(0),
      slice_case(14),
      dropout_case(),
      prox_case("l21", ProxKind::l21, 200),
      prox_case("linf1", ProxKind::linf1, 1000),
      head_loss_case(false, 11),
      head_loss_case(true, 40)};
  for (OpCase& attention : attention_cases()) cases.push_back(std::move(attention));
  return cases;
}

BuiltCase::BuiltCase(const OpCase& op_case) {
  op_case.build(plan, y);
  if (y.exists()) {
    dy = plan.input("seed", DType::f32, plan.tensor(y).rows, plan.tensor(y).cols);
    plan.seed_gradient(y, dy);
    plan.keep(y);
  }
  std::vector<AdamWGroup> groups;
  for (const TensorId id : plan.parameters()) {
    // A large epsilon: where a gradient is zero but for rounding, AdamW would show its sign.
    groups.push_back({id, 1.5f, 0.1f, 1e-2f});
  }
  plan.set_adamw(0.9f, 0.95f, groups);
  plan.finish(op_case.target);
}

void fill(Executor& executor, const OpCase& op_case) {
  const StepPlan& plan = executor.plan();
  for (std::size_t i = 0; i < plan.tensors().size(); ++i) {
    const Tensor& tensor = plan.tensors()[i];
    const TensorId id{static_cast<std::int32_t>(i)};
    if (tensor.storage != Storage::parameter && tensor.storage != Storage::input) continue;
    if (id == plan.whole(Storage::parameter)) continue;
    const RandomStream random(17, i);
    std::vector<float> values(static_cast<std::size_t>(tensor.size()));
    std::vector<std::int32_t> tokens(values.size());
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<float>(op_case.lowest +
                                     (op_case.highest - op_case.lowest) * random.uniform(k));
      tokens[k] = static_cast<std::int32_t>(random.below(k, 7));
    }
    if (tensor.name == "targets") tokens[3] = -1;  // a row that does not count
    if (tensor.dtype == DType::i32) {
      executor.write_tokens(id, tokens);
    } else {
      executor.write(id, values);
    }
  }
  for (const Storage storage : {Storage::moment1, Storage::moment2}) {
    const TensorId whole = plan.whole(storage);
    if (!whole.exists()) continue;
    executor.write(whole, std::vector<float>(static_cast<std::size_t>(plan.tensor(whole).size())));
  }
  executor.run(Program::refresh, {});
}

std::vector<std::vector<float>> everything(Executor& executor, const OpCase& op_case,
                                           const BuiltCase& built) {
  fill(executor, op_case);
  std::vector<std::vector<float>> values;
  const auto take = [&](TensorId id) {
    if (id.exists()) values.push_back(read_all(executor, id));
  };
  const StepPlan& plan = built.plan;
  executor.run(Program::evaluate, case_scalars());
  take(built.y);
  take(plan.find("losses"));
  executor.run(Program::train, case_scalars());
  take(plan.find("loss"));
  for (const TensorId p : plan.parameters()) take(plan.gradient(p));
  executor.run(Program::train_accumulate, case_scalars());
  for (const TensorId p : plan.parameters()) take(plan.gradient(p));
  executor.run(Program::update, case_scalars());
  take(plan.adamw_norm());
  for (const TensorId p : plan.parameters()) take(p);
  return values;
}

double norm_of(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

}  // namespace fathom::engine
