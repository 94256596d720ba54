#include <cmath>

#include "engine/ref/ref_ops.h"

namespace fathom::engine::ref {

void run(const SquaredNorm& op, const Context& context) {
  double sum = 0;
  for (const TensorId parameter : context.plan.parameters()) {
    const TensorId gradient = context.plan.gradient(parameter);
    for (std::int64_t i = 0; i < context.tensor(gradient).size(); ++i) {
      sum += context.data(gradient)[i] * context.data(gradient)[i];
    }
  }
  context.data(op.norm)[0] = std::sqrt(sum);
}

void run(const AdamW& op, const Context& context) {
  const double norm = context.data(op.norm)[0], clip = context.scalars.clip_norm;
  const double factor = clip > 0 && norm > clip ? clip / norm : 1;
  const auto t = static_cast<double>(context.scalars.step);
  const double beta1 = op.beta1, beta2 = op.beta2;
  for (const AdamWGroup& group : op.groups) {
    const Tensor& tensor = context.tensor(group.parameter);
    const double* gradient = context.data(context.plan.gradient(group.parameter));
    double* parameter = context.data(group.parameter);
    double* m = context.data(op.moment1) + tensor.offset_bytes / bytes_of(DType::f32);
    double* v = context.data(op.moment2) + tensor.offset_bytes / bytes_of(DType::f32);
    const double lr = static_cast<double>(context.scalars.learning_rate) * group.lr_multiplier;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double g = gradient[i] * factor;
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double step = (m[i] / (1 - std::pow(beta1, t))) /
                          (std::sqrt(v[i] / (1 - std::pow(beta2, t))) + group.epsilon);
      parameter[i] -= lr * group.weight_decay * parameter[i] + lr * step;
    }
  }
}

void run(const CopyParameters& op, const Context& context) {
  for (const TensorId copy : op.copies) {
    const double* source = context.data(context.tensor(copy).master);
    std::copy(source, source + context.tensor(copy).size(), context.data(copy));
  }
}

}  // namespace fathom::engine::ref
