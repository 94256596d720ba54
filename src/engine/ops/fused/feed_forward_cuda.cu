// Linear and Activation as one kernel, and the adjoint of Activation with the product that makes
// its incoming gradient. Neither u nor that gradient is written: where they fuse, nobody else wants
// them. The slopes between the two lie in an order of their own (fused_product.h), so both
// directions fuse or neither does.
#include <optional>

#include "engine/cuda/executor.h"
#include "engine/cuda/fused_product.h"

namespace fathom::engine::cuda {
namespace {

/// The product in its best form.
std::shared_ptr<FusedProduct> fastest(const FusedSpec& spec, const FusedOperands& operands,
                                      const Context& context) {
  std::vector<std::string> names;
  std::vector<std::shared_ptr<FusedProduct>> products;
  for (const FusedVariant& variant : FusedProduct::variants(spec)) {
    names.push_back(variant.name());
    products.push_back(
        std::make_shared<FusedProduct>(spec, operands, variant, context.multiprocessors));
  }
  Block partial;  // the scratch has no place yet
  return products[context.products.pick(
      spec.name(), names, [&](std::size_t i, cudaStream_t stream) {
        const std::int64_t bytes = products[i]->parts() * spec.n * 4;
        if (spec.backward && partial.bytes() < bytes) partial = Block(bytes);
        products[i]->run(reinterpret_cast<float*>(partial.data()), stream);
      })];
}

std::optional<FusedSpec> forward_spec(const Linear& linear, const Activation& activation,
                                      const Context& context) {
  if (activation.u != linear.y || context.tensor(linear.x).dtype != DType::bf16) return {};
  if (linear.bias.exists() && context.late_bias(linear.y) != linear.bias) return {};
  if (context.is_kept(activation.u)) return {};
  if (context.overlap(activation.y, linear.x) || context.overlap(activation.slopes, linear.x)) {
    return {};
  }
  const Tensor& x = context.tensor(linear.x);
  const FusedSpec spec{x.rows, context.tensor(linear.y).cols, x.cols, activation.kind, false};
  if (FusedProduct::variants(spec).empty()) return {};
  return spec;
}

/// dx of `down` and du of the activation.
std::optional<FusedSpec> backward_spec(const LinearBackward& down,
                                       const ActivationBackward& activation,
                                       const LinearBackward& up, const Context& context) {
  if (up.dy != activation.du) return {};
  if (!down.dx.exists() || activation.dy != down.dx) return {};
  if (context.address(activation.du) != context.address(down.dx)) return {};
  if (down.dx_mode != GradMode::overwrite || activation.mode != GradMode::overwrite) return {};
  const Tensor& x = context.tensor(down.x);
  if (x.dtype != DType::bf16) return {};
  const FusedSpec spec{x.rows, x.cols, context.tensor(down.weight).rows, activation.kind, true};
  if (FusedProduct::variants(spec).empty()) return {};
  return spec;
}

/// Whether this program fuses wherever it writes or reads these slopes.
bool fuses(const std::vector<Op>& ops, TensorId slopes, const Context& context) {
  int found = 0;
  for (std::size_t i = 1; i + 1 < ops.size(); ++i) {
    if (const auto* op = std::get_if<Activation>(&ops[i]); op && op->slopes == slopes) {
      const auto* up = std::get_if<Linear>(&ops[i - 1]);
      if (!up || !forward_spec(*up, *op, context)) return false;
      ++found;
    }
    if (const auto* op = std::get_if<ActivationBackward>(&ops[i]); op && op->slopes == slopes) {
      const auto* down = std::get_if<LinearBackward>(&ops[i - 1]);
      const auto* up = std::get_if<LinearBackward>(&ops[i + 1]);
      if (!down || !up || !backward_spec(*down, *op, *up, context)) return false;
      ++found;
    }
  }
  return found == 2;
}

bool fuses(TensorId slopes, const Context& context) {
  return fuses(context.plan.program(Program::train), slopes, context) &&
         fuses(context.plan.program(Program::train_accumulate), slopes, context);
}

/// The slopes that training keeps of this activation; evaluation keeps none.
TensorId slopes_of(const Activation& activation, const Context& context) {
  for (const ForwardOp& op : context.plan.forward()) {
    const auto* each = std::get_if<Activation>(&op);
    if (each != nullptr && each->u == activation.u) return each->slopes;
  }
  return {};
}

}  // namespace

BoundOp bind_activated(const Linear& linear, const Activation& activation, const Context& context) {
  const TensorId slopes = slopes_of(activation, context);
  if (!slopes.exists() || !fuses(slopes, context)) return {};
  const auto spec = forward_spec(linear, activation, context);
  if (!spec) return {};
  const FusedOperands operands{context.address(linear.x), context.address(linear.weight),
                               context.floats(context.late_bias(linear.y)),
                               context.address(activation.slopes), context.address(activation.y)};
  const auto product = fastest(*spec, operands, context);
  return [product](cudaStream_t stream) { product->run(nullptr, stream); };
}

BoundOp bind_activated(const LinearBackward& down, const ActivationBackward& activation,
                       const LinearBackward& up, const Context& context) {
  if (!activation.slopes.exists() || !fuses(activation.slopes, context)) return {};
  const auto spec = backward_spec(down, activation, up, context);
  if (!spec) throw InternalError("a gradient finds slopes in an order that it cannot read");
  const FusedOperands operands{context.address(down.dy), context.address(down.weight), nullptr,
                               context.address(activation.slopes), context.address(activation.du)};
  const auto product = fastest(*spec, operands, context);
  const std::int64_t width = context.tensor(up.dy).cols;
  context.scratch->reserve(product->parts() * width * 4);
  return [product, width, scratch = context.scratch, sums = context.floats(up.d_bias),
          accumulate = up.d_bias_mode == GradMode::accumulate](cudaStream_t stream) {
    auto* partial = static_cast<float*>(scratch->data());
    product->run(partial, stream);
    if (sums == nullptr) return;
    reduce_parts(partial, product->parts(), width, sums, 1, accumulate, stream);
  };
}

}  // namespace fathom::engine::cuda
