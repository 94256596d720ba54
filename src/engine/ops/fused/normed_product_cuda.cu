// Linear and the Norm that adds its result to the stream as one kernel, and the adjoint of Norm
// with the product that makes its incoming gradient (row_product.h). Neither writes what only the
// other reads: the branch, dy.
#include "engine/cuda/executor.h"
#include "engine/cuda/row_product.h"

namespace fathom::engine::cuda {
namespace {

bool is_bf16_or_none(TensorId id, const Context& context) {
  return !id.exists() || context.tensor(id).dtype == DType::bf16;
}

bool is_only_reader(TensorId id, const Context& context) {
  if (context.is_kept(id)) return false;
  for (int which = 0; which < kProgramCount; ++which) {
    int readers = 0;
    for (const Op& op : context.plan.program(static_cast<Program>(which))) {
      const Uses uses = uses_of(op);
      readers += static_cast<int>(std::count(uses.reads.begin(), uses.reads.end(), id));
    }
    if (readers > 1) return false;
  }
  return true;
}

/// The ops apart, for timing: they run as they are, with memory of their own.
class Apart {
 public:
  explicit Apart(const Context& context) : context_(context) {
    context_.between = [this] { return between_; };
    context_.beside = [this](SideWork work) { rest_.push_back(std::move(work.run)); };
  }
  template <class... Ops>
  void bind_all(const Ops&... ops) {
    (ops_.push_back(bind(ops, context_)), ...);
    memory_ = Block(between_->bytes());
    between_->place(memory_.data());
  }
  void run(cudaStream_t stream) const {
    for (const BoundOp& op : ops_) op(stream);
    for (const BoundOp& op : rest_) op(stream);
  }
  bool bound() const { return !ops_.empty(); }

 private:
  Context context_;
  std::shared_ptr<Scratch> between_ = std::make_shared<Scratch>();
  Block memory_;
  std::vector<BoundOp> ops_, rest_;
};

/// The fused kernel in its best form, or null where the ops apart are faster.
template <class... Ops>
std::shared_ptr<RowProduct> fastest(const RowSpec& spec, const RowOperands& operands,
                                    const NormSums& sums, const Context& context,
                                    const Ops&... ops) {
  std::vector<std::string> names{"apart"};
  std::vector<std::shared_ptr<RowProduct>> products{nullptr};
  for (const RowVariant& variant : RowProduct::variants(spec)) {
    names.push_back(variant.name());
    products.push_back(
        std::make_shared<RowProduct>(spec, operands, variant, context.multiprocessors));
  }
  if (products.size() == 1) return nullptr;
  Apart apart(context);
  Block partial;  // what is between has no place yet
  const std::string key = spec.name() + (operands.d_branch != nullptr ? " branch" : "");
  return products[context.products.pick(key, names, [&](std::size_t i, cudaStream_t stream) {
    if (i == 0) {
      if (!apart.bound()) apart.bind_all(ops...);
      apart.run(stream);
      return;
    }
    const RowProduct& product = *products[i];
    const std::int64_t bytes = std::int64_t{product.parts()} * product.sums() * spec.d * 4;
    if (partial.bytes() < bytes) partial = Block(bytes);
    auto* memory = reinterpret_cast<float*>(partial.data());
    product.run(memory, stream);
    if (spec.backward) {
      reduce_sums(memory, product.parts(), product.sums(), spec.d, sums, stream);
    }
  })];
}

}  // namespace

BoundOp bind_normed(const Linear& linear, const Norm& norm, const Context& context) {
  const Tensor& a = context.tensor(linear.x);
  if (norm.branch != linear.y) return {};
  if (a.dtype != DType::bf16 || context.tensor(norm.y).dtype != DType::bf16 ||
      context.tensor(norm.x).dtype != DType::f32 || !norm.gain.exists()) {
    return {};
  }
  // The ops apart are done with a when the norm begins to write.
  for (const TensorId written : {norm.r, norm.y, norm.stats}) {
    if (context.overlap(written, linear.x)) return {};
  }
  const RowSpec spec{.m = a.rows,
                     .d = context.tensor(norm.x).cols,
                     .k = a.cols,
                     .rms = norm.kind == NormKind::rms};
  if (RowProduct::variants(spec).empty() || !is_only_reader(linear.y, context)) return {};
  const RowOperands operands{.a = context.address(linear.x),
                             .b = context.address(linear.weight),
                             .gain = context.floats(norm.gain),
                             .stats = context.floats(norm.stats),
                             .r = context.floats(norm.r),
                             .stream_scale = norm.stream_scale,
                             .branch_scale = norm.branch_scale,
                             .x = context.floats(norm.x),
                             .shift = context.floats(norm.bias),
                             .bias = context.floats(linear.bias),
                             .y = context.address(norm.y),
                             .epsilon = norm.epsilon};
  const auto product = fastest(spec, operands, {}, context, linear, norm);
  if (!product) return {};
  return [product](cudaStream_t stream) { product->run(nullptr, stream); };
}

bool makes_bias_gradient(const NormBackward& norm, const LinearBackward& branch) {
  if (!branch.d_bias.exists()) return false;
  if (norm.d_branch == branch.dy) return norm.d_branch_mode == GradMode::overwrite;
  return norm.shares_gradient(branch.dy);
}

BoundOp bind_normed(const LinearBackward& linear, const NormBackward& norm,
                    const LinearBackward* branch, const Context& context) {
  if (!linear.dx.exists() || norm.dy != linear.dx) return {};
  const bool overwrite = linear.dx_mode == GradMode::overwrite &&
                         norm.dx_mode == GradMode::overwrite &&
                         norm.d_branch_mode == GradMode::overwrite;
  const Tensor& r = context.tensor(norm.r);
  if (!overwrite || !norm.gain.exists() || r.dtype != DType::f32) return {};
  if (!norm.incoming.exists() || !norm.dx.exists()) return {};
  for (const TensorId id : {linear.dy, norm.incoming, norm.dx, norm.d_branch}) {
    if (!is_bf16_or_none(id, context)) return {};
  }
  for (const TensorId written : {norm.dx, norm.d_branch}) {
    if (context.overlap(written, linear.dy)) return {};
  }
  const bool branch_sums = branch != nullptr && makes_bias_gradient(norm, *branch);
  const RowSpec spec{.m = r.rows,
                     .d = r.cols,
                     .k = context.tensor(linear.weight).rows,
                     .backward = true,
                     .rms = norm.kind == NormKind::rms,
                     .branch_sums = branch_sums};
  if (RowProduct::variants(spec).empty() || !is_only_reader(linear.dx, context)) return {};
  const RowOperands operands{.a = context.address(linear.dy),
                             .b = context.address(linear.weight),
                             .gain = context.floats(norm.gain),
                             .stats = context.floats(norm.stats),
                             .r = context.floats(norm.r),
                             .stream_scale = norm.stream_scale,
                             .branch_scale = norm.branch_scale,
                             .incoming = context.address(norm.incoming),
                             .dx = context.address(norm.dx),
                             .d_branch = context.address(norm.d_branch)};
  const NormSums sums{
      {context.floats(norm.d_gain), context.floats(norm.d_bias),
       branch_sums ? context.floats(branch->d_bias) : nullptr},
      {norm.d_gain_mode == GradMode::accumulate, norm.d_bias_mode == GradMode::accumulate,
       branch_sums && branch->d_bias_mode == GradMode::accumulate}};
  LinearBackward bare = linear;
  bare.d_weight = bare.d_bias = {};
  const auto product = fastest(spec, operands, sums, context, bare, norm);
  if (!product) return {};
  // Nobody waits for the sums over all rows: they are brought together beside what comes next.
  const std::int64_t width = r.cols;
  const auto partial = context.between();
  partial->reserve(std::int64_t{product->parts()} * product->sums() * width * 4);
  SideWork reduction{.between = partial};
  for (float* target : sums.target) {
    if (target != nullptr) reduction.touched.writes.push_back(bytes_at(target, r.cols * 4));
  }
  reduction.run = [=](cudaStream_t stream) {
    reduce_sums(static_cast<const float*>(partial->data()), product->parts(), product->sums(),
                width, sums, stream);
  };
  context.beside(std::move(reduction));
  return [=](cudaStream_t stream) { product->run(static_cast<float*>(partial->data()), stream); };
}

}  // namespace fathom::engine::cuda
