// Linear and Activation as one kernel, and the adjoint of Activation with the product that makes
// its incoming gradient. Both write what the ops apart write, but for that gradient: the ops apart
// lay du on its memory, so nobody else wants it.
#include "engine/cuda/executor.h"
#include "engine/cuda/fused_product.h"

namespace fathom::engine::cuda {
namespace {

bool overlap(TensorId a, TensorId b, const Context& context) {
  const char* first = static_cast<const char*>(context.address(a));
  const char* second = static_cast<const char*>(context.address(b));
  return first < second + context.tensor(b).bytes() && second < first + context.tensor(a).bytes();
}

/// The fused kernel in its best form, or null where the ops apart are faster.
std::shared_ptr<FusedProduct> fastest(const FusedSpec& spec, const FusedOperands& operands,
                                      const std::function<std::vector<BoundOp>()>& bind_apart,
                                      const Context& context) {
  std::vector<std::string> names{"apart"};
  std::vector<std::shared_ptr<FusedProduct>> products{nullptr};
  for (const FusedVariant& variant : FusedProduct::variants(spec)) {
    names.push_back(variant.name());
    products.push_back(
        std::make_shared<FusedProduct>(spec, operands, variant, context.multiprocessors));
  }
  if (products.size() == 1) return nullptr;
  std::vector<BoundOp> apart;
  Block partial;  // the scratch has no place yet
  return products[context.products.pick(
      spec.name(), names, [&](std::size_t i, cudaStream_t stream) {
        if (i == 0) {
          if (apart.empty()) apart = bind_apart();
          for (const BoundOp& op : apart) op(stream);
          return;
        }
        const std::int64_t bytes = products[i]->parts() * spec.n * 4;
        if (spec.backward && partial.bytes() < bytes) partial = Block(bytes);
        products[i]->run(reinterpret_cast<float*>(partial.data()), stream);
      })];
}

/// dx of `down` and du of the activation.
std::shared_ptr<FusedProduct> backward_product(const LinearBackward& down,
                                               const ActivationBackward& activation,
                                               const Context& context) {
  if (activation.slopes.exists()) return {};
  if (!down.dx.exists() || activation.dy != down.dx) return {};
  if (context.address(activation.du) != context.address(down.dx)) return {};
  if (down.dx_mode != GradMode::overwrite || activation.mode != GradMode::overwrite) return {};
  const Tensor& x = context.tensor(down.x);
  if (x.dtype != DType::bf16) return {};
  const FusedSpec spec{x.rows, x.cols, context.tensor(down.weight).rows, activation.kind, true};
  const FusedOperands operands{context.address(down.dy), context.address(down.weight),
                               context.floats(context.late_bias(activation.u)),
                               context.address(activation.u), context.address(activation.du)};
  LinearBackward bare = down;
  bare.d_weight = bare.d_bias = {};
  return fastest(
      spec, operands,
      [&] {
        return std::vector{bind(bare, context), bind(activation, context)};
      },
      context);
}

}  // namespace

BoundOp bind_activated(const Linear& linear, const Activation& activation, const Context& context) {
  if (activation.slopes.exists()) return {};
  if (activation.u != linear.y || context.tensor(linear.x).dtype != DType::bf16) return {};
  const TensorId bias = context.late_bias(linear.y);
  if (linear.bias.exists() && bias != linear.bias) return {};
  if (overlap(activation.y, linear.x, context) || overlap(activation.y, linear.y, context)) {
    return {};
  }
  const Tensor& x = context.tensor(linear.x);
  const FusedSpec spec{x.rows, context.tensor(linear.y).cols, x.cols, activation.kind, false};
  const FusedOperands operands{context.address(linear.x), context.address(linear.weight),
                               context.floats(bias), context.address(linear.y),
                               context.address(activation.y)};
  const auto product = fastest(
      spec, operands,
      [&] {
        return std::vector{bind(linear, context), bind(activation, context)};
      },
      context);
  if (!product) return {};
  return [product](cudaStream_t stream) { product->run(nullptr, stream); };
}

BoundOp bind_activated(const LinearBackward& down, const ActivationBackward& activation,
                       const LinearBackward& up, const Context& context) {
  if (up.dy != activation.du) return {};
  const auto product = backward_product(down, activation, context);
  if (!product) return {};
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
