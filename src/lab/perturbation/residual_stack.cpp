#include "lab/perturbation/residual_stack.h"

#include <cmath>
#include <string>

#include "core/random.h"

namespace fathom::lab {

using namespace engine;

namespace {

/// Appends the sublayers in reading order.
class StackBuilder {
 public:
  StackBuilder(const StackShape& shape, const std::vector<double>& omegas, StepPlan& plan)
      : shape_(shape),
        omegas_(omegas),
        plan_(plan),
        rows_(static_cast<std::int64_t>(shape.rows())),
        width_(static_cast<std::int64_t>(shape.width)) {}

  void build() {
    input = plan_.input("x", DType::f32, rows_, width_);
    TensorId x = input;
    TensorId branch;
    for (std::size_t i = 0; i < shape_.sublayers(); ++i) {
      TensorId from = x;
      if (shape_.norm == NormPlace::pre) {
        from = normalise(x, branch, 1);
        branch = {};
      }
      branch = i % 2 == 0 ? attention(i, from) : feed_forward(i, from);
      plan_.keep(branch);
      branches.push_back(branch);
      if (shape_.norm == NormPlace::post) {
        TensorId sum = x;
        x = normalise(sum, branch, omegas_.empty() ? 1 : omegas_[i]);
        branch = {};
      }
    }
    output = shape_.norm == NormPlace::pre ? normalise(x, branch, 1) : x;
    plan_.keep(output);
    plan_.finish();
  }

  TensorId input, output;
  std::vector<TensorId> in, out, gains, biases, branches;

 private:
  std::string name(const char* what, std::size_t index) const {
    return std::string(what) + "." + std::to_string(index);
  }

  /// LN(omega x + branch); x becomes that sum.
  TensorId normalise(TensorId& x, TensorId branch, double omega) {
    const std::size_t index = gains.size();
    gains.push_back(plan_.parameter(name("gain", index), 1, width_));
    biases.push_back(plan_.parameter(name("bias", index), 1, width_));
    const TensorId sum = branch.exists()
                             ? plan_.activation(name("sum", index), DType::f32, rows_, width_)
                             : TensorId{};
    const TensorId y = plan_.activation(name("norm", index), DType::f32, rows_, width_);
    const TensorId stats = plan_.activation(name("statistics", index), DType::f32, rows_, 2);
    Norm op;
    op.x = x;
    op.branch = branch;
    op.gain = gains.back();
    op.bias = biases.back();
    op.r = sum;
    op.y = y;
    op.stats = stats;
    op.stream_scale = static_cast<float>(omega);
    plan_.append(op);
    if (sum.exists()) x = sum;
    return y;
  }

  TensorId linear(const std::string& label, TensorId x, std::int64_t outs,
                  std::vector<TensorId>& weights) {
    weights.push_back(plan_.parameter(label + ".weight", outs, plan_.tensor(x).cols));
    const TensorId y = plan_.activation(label, DType::f32, rows_, outs);
    plan_.append(Linear{x, weights.back(), {}, y});
    return y;
  }

  TensorId attention(std::size_t i, TensorId x) {
    AttentionShape shape;
    shape.batch = static_cast<std::int64_t>(shape_.batch);
    shape.context = static_cast<std::int64_t>(shape_.tokens);
    shape.heads = shape.key_heads = static_cast<std::int64_t>(shape_.heads);
    shape.head_size = width_ / shape.heads;
    shape.scale = 1 / std::sqrt(static_cast<float>(shape.head_size));
    const TensorId qkv = linear(name("qkv", i), x, shape.qkv_cols(), in);
    const TensorId y = plan_.activation(name("mixed", i), DType::f32, rows_, width_);
    const TensorId stats =
        plan_.activation(name("sums", i), DType::f32, shape.batch * shape.heads, shape.context);
    plan_.append(Attention{qkv, y, stats, shape});
    return linear(name("out", i), y, width_, out);
  }

  TensorId feed_forward(std::size_t i, TensorId x) {
    const TensorId u = linear(name("up", i), x, 4 * width_, in);
    const TensorId y = plan_.activation(name("hidden", i), DType::f32, rows_, 4 * width_);
    plan_.append(Activation{u, y, ActivationKind::relu});
    return linear(name("down", i), y, width_, out);
  }

  const StackShape& shape_;
  const std::vector<double>& omegas_;
  StepPlan& plan_;
  std::int64_t rows_, width_;
};

std::vector<float> draw_matrix(const RandomStream& random, std::uint64_t& index, std::size_t size,
                               double deviation) {
  std::vector<float> values(size);
  for (float& value : values) {
    value = static_cast<float>(deviation * random.normal(index++));
  }
  return values;
}

}  // namespace

struct ResidualStack::State {
  StackShape shape;
  StepPlan plan;
  std::vector<TensorId> in, out, gains, biases, branches;
  TensorId input, output;
  std::unique_ptr<Executor> executor;
};

ResidualStack::ResidualStack(const StackShape& shape, const std::vector<double>& omegas,
                             const Device& device)
    : state_(std::make_unique<State>()) {
  state_->shape = shape;
  StackBuilder builder(state_->shape, omegas, state_->plan);
  builder.build();
  state_->in = builder.in;
  state_->out = builder.out;
  state_->gains = builder.gains;
  state_->biases = builder.biases;
  state_->branches = builder.branches;
  state_->input = builder.input;
  state_->output = builder.output;
  state_->executor = make_executor(state_->plan, device);
}

ResidualStack::~ResidualStack() = default;

std::vector<float> ResidualStack::run(const StackWeights& weights, const std::vector<float>& inputs,
                                      const std::vector<double>& gains) {
  Executor& executor = *state_->executor;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    executor.write(state_->in[i], weights[i].in);
    executor.write(state_->out[i], weights[i].out);
  }
  const std::size_t width = state_->shape.width;
  for (std::size_t i = 0; i < state_->gains.size(); ++i) {
    const double gain = gains.empty() ? 1 : gains[i];
    executor.write(state_->gains[i], std::vector<float>(width, static_cast<float>(gain)));
    executor.write(state_->biases[i], std::vector<float>(width, 0));
  }
  executor.run(Program::refresh, {});
  executor.write(state_->input, inputs);
  executor.run(Program::evaluate, {});
  std::vector<float> output(state_->shape.elements());
  executor.read(state_->output, output);
  return output;
}

std::vector<double> ResidualStack::branch_variances() const {
  std::vector<double> variances;
  std::vector<float> values(state_->shape.elements());
  for (const TensorId branch : state_->branches) {
    state_->executor->read(branch, values);
    variances.push_back(variance(values));
  }
  return variances;
}

StackWeights draw_weights(const StackShape& shape, std::uint64_t seed, std::uint64_t stream) {
  const RandomStream random(seed, stream);
  std::uint64_t index = 0;
  const std::size_t square = shape.width * shape.width;
  const auto width = static_cast<double>(shape.width);
  const double narrow = std::sqrt(1 / width);      // d to d
  const double wide = std::sqrt(2 / (5 * width));  // d to 4d and back
  StackWeights weights;
  for (std::size_t i = 0; i < shape.sublayers(); ++i) {
    const bool attention = i % 2 == 0;
    const double deviation = attention ? narrow : wide;
    SublayerWeights sublayer;
    sublayer.in = draw_matrix(random, index, (attention ? 3 : 4) * square, deviation);
    sublayer.out = draw_matrix(random, index, (attention ? 1 : 4) * square, deviation);
    weights.push_back(std::move(sublayer));
  }
  return weights;
}

StackWeights with_branch_gain(const StackShape& shape, StackWeights weights, double gain) {
  const auto scale = [&](std::vector<float>& values, std::size_t from) {
    for (std::size_t i = from; i < values.size(); ++i) values[i] *= static_cast<float>(gain);
  };
  for (std::size_t i = 0; i < weights.size(); ++i) {
    scale(weights[i].in, i % 2 == 0 ? 2 * shape.width * shape.width : 0);
    scale(weights[i].out, 0);
  }
  return weights;
}

std::vector<float> draw_inputs(const StackShape& shape, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x696e70757473;  // "inputs"
  std::uint64_t index = 0;
  return draw_matrix(RandomStream(seed, kStream), index, shape.elements(), 1);
}

StackWeights perturbed(const StackWeights& weights, const StackWeights& direction, double epsilon) {
  StackWeights result = weights;
  const auto add = [&](std::vector<float>& to, const std::vector<float>& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += static_cast<float>(epsilon) * from[i];
  };
  for (std::size_t i = 0; i < result.size(); ++i) {
    add(result[i].in, direction[i].in);
    add(result[i].out, direction[i].out);
  }
  return result;
}

double variance(const std::vector<float>& values) {
  double mean = 0;
  for (const float value : values) mean += value;
  mean /= static_cast<double>(values.size());
  double sum = 0;
  for (const float value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size());
}

}  // namespace fathom::lab
